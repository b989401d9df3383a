# A thin layer over CMake presets; `make help` lists what it can do.
#   CMAKE_ARGS="-DKEY=VALUE ..."  goes to every configure step
#   JOBS=n                        parallel jobs (default: all cores)

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CMAKE_ARGS ?=
DESTDIR ?=
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
CTEST = ctest --output-on-failure -j $(JOBS)
SOURCES = $(shell find src include tests fuzz examples bench -name '*.[ch]' 2>/dev/null | sort)

# build a preset: $(call build,preset)
build = cmake --preset $(1) $(CMAKE_ARGS) && cmake --build --preset $(1) -j $(JOBS)

.DEFAULT_GOAL := all
.PHONY: all help setup setup-dev demo test test-all test-exact test-accuracy test-faults test-checkpoints \
         test-hosts test-busy asan tsan fuzz coverage lint format bench bench-comm bench-scaling bench-data \
         update-counts \
        install clean

all: ## build the release: build/cohort
	@$(call build,release)

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing to build and run (apt)
	@scripts/setup.sh build

setup-dev: ## the same for lint, fuzz and coverage
	@scripts/setup.sh build lint fuzz coverage

demo: setup all ## train Fashion-MNIST on two ranks, from a fresh machine
	build/cohort train configs/fashion-mnist.yaml -n 2

test: setup all ## set up, build, run the tests
	@cd build && $(CTEST) -LE slow

test-all: setup all ## the same with the slow tests, which train to full accuracy
	@cd build && $(CTEST)

test-exact: setup all ## the same bits on any number of ranks, over shm and mpi: the whole table
	@scripts/exact.sh build

test-accuracy: setup all ## accuracy of each level of `precision` beside fp32; SEEDS=n
	@scripts/accuracy.sh build $(or $(SEEDS),5)

test-faults: setup all ## 300 runs in which a rank dies, hangs or finds its disk full
	@build/tests/faults/faults build/tests/faults/faulty $(or $(FAULTS),300) $(or $(SEED),1)

test-checkpoints: setup all ## 300 times SIGKILL while checkpoints are written
	@tests/checkpoints/kills.sh build/cohort $(or $(KILLS),300)

test-busy: setup all ## the tests beside two busy loops, those with a clock 20 times; ROUNDS=n, REPEATS=n
	@scripts/busy.sh build $(or $(ROUNDS),3) $(or $(REPEATS),20)

test-hosts: all ## training over several hosts, made of namespaces, with sshd; needs root
	@scripts/setup.sh build hosts
	@tests/hosts/hosts.sh build

asan: setup ## tests under the address, undefined-behaviour and leak sanitizers
	@$(call build,asan-ubsan)
	@cd build-asan-ubsan && $(CTEST) -LE 'slow|style'

tsan: setup ## tests with several threads, ranks over MPI too, under the thread sanitizer
	@$(call build,tsan)
	@cd build-tsan && $(CTEST) -L threads -LE slow

fuzz: ## fuzz each reader of untrusted bytes for FUZZ_SECONDS
	@scripts/setup.sh build fuzz
	@$(call build,fuzz)
	@scripts/fuzz.sh build-fuzz $(FUZZ_SECONDS)

coverage: ## which lines the tests run: build-coverage/coverage.txt
	@scripts/setup.sh build coverage
	@$(call build,coverage)
	@cd build-coverage && $(CTEST) -LE 'slow|style' && \
	    gcovr -r .. -f ../src -o coverage.txt . && tail -n 4 coverage.txt

lint: all ## layout, layers, limits, clang-tidy
	@scripts/setup.sh lint
	@clang-format --dry-run -Werror $(SOURCES)
	@scripts/check_layers.sh
	@scripts/check_limits.sh
	@scripts/check_opens.sh
	@scripts/tidy.sh build $(JOBS)

format: ## put every source file into the project's layout
	@scripts/setup.sh lint
	@clang-format -i $(SOURCES)

bench: setup all ## measure speed beside PyTorch and MPI where they are installed; NETS=... a part
	@bench/train.sh $(NETS)
	@$(if $(NETS),,bench/comm.sh)

update-counts: setup all ## write down how many instructions a step and an all-reduce take now
	@tests/perf/counts.sh build update

bench-comm: setup all ## measure the sum over two ranks, beside Gloo, Open MPI and MPICH
	@bench/comm.sh

bench-scaling: setup all ## measure two ranks beside two runs that exchange nothing; NETS=... a part
	@bench/scaling.sh $(NETS)

bench-data: setup all ## measure how fast images come, beside libjpeg-turbo's own decoder
	@bench/data.sh

install: all ## install to PREFIX (default /usr/local)
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)

clean: ## remove what was built
	rm -rf build build-asan-ubsan build-coverage build-debug build-fuzz build-mpi build-tsan
