# A thin layer over CMake presets; `make help` lists what it can do. Each target first has what it
# needs installed, if it is missing and there are rights to (scripts/setup.sh).
#   CMAKE_ARGS="-DKEY=VALUE ..."  goes to every configure step
#   JOBS=n                        parallel jobs (default: all cores)
#   SETUP=:                       install nothing, look for nothing

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CMAKE_ARGS ?=
SETUP ?= scripts/setup.sh
DESTDIR ?=
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
PAGES = README.md $(wildcard docs/*.md)
CTEST = ctest --output-on-failure -j $(JOBS)
SOURCES = $(shell find src include tests fuzz examples bench -name '*.[ch]' -o -name '*.cu' 2>/dev/null | sort)

# build a preset with its tests: $(call build,preset)
build = cmake --preset $(1) $(CMAKE_ARGS) && cmake --build --preset $(1) -j $(JOBS)
# the tests of a build and then those that were skipped, with the reasons: $(call run,folder,options of ctest)
run = cd $(1) && rm -f tests.xml && { \
    $(CTEST) --output-junit "$$PWD/tests.xml" --test-output-size-passed 1000000 $(2); \
    status=$$?; ../scripts/skips.sh tests.xml; exit $$status; }
# the release, without
program = cmake --preset release $(CMAKE_ARGS) && cmake --build build -j $(JOBS)

.DEFAULT_GOAL := all
.PHONY: all help setup setup-dev demo tests test test-all test-gpu test-sanitizer test-device test-exact test-accuracy test-faults test-checkpoints test-additions \
         test-mutations test-distros test-arm64 test-hosts test-network test-first test-shards test-plan test-tune simulate test-slurm test-explain test-docs docs-outputs docs test-busy asan tsan fuzz coverage lint format bench bench-comm bench-scaling bench-data bench-watch \
         update-counts \
        deb dist test-packages install uninstall clean

all: ## build the release: build/cohort and the library
	@$(SETUP) build optional
	@$(program)

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing to build, run and test (apt)
	@$(SETUP) --ask build optional demo test

setup-dev: ## the same for lint, fuzz and coverage
	@$(SETUP) --ask build optional demo test lint fuzz coverage

tests: ## build the release and its tests
	@$(SETUP) build optional test
	@$(call build,release)

demo: ## train Fashion-MNIST on two ranks, from a fresh machine
	@$(SETUP) build optional demo
	@$(program)
	build/cohort train configs/fashion-mnist.yaml -n 2 --run-dir runs/first $(if $(wildcard runs/first),--resume)

test: tests ## build, run the tests
	@$(call run,build,-LE slow)

test-all: tests ## the same with the slow tests, which train to full accuracy
	@$(call run,build)

test-gpu: tests ## what runs on a GPU, and the kernels of GPUs
	@$(call run,build,-L gpu)

test-sanitizer: tests ## the kernels of GPUs under CUDA's compute-sanitizer: memory, barriers, races; needs a GPU
	@scripts/gpu_sanitizer.sh build $(TOOLS)

test-device: tests ## GPUs without one: the tests on the stand-in, and the same bits on 1, 2, 4 ranks, killed and resized
	@$(call run,build,-R '^(device_|cli_device)')
	@LD_LIBRARY_PATH=build/tests/device/standin XDG_CACHE_HOME=/dev/null STANDIN_GPUS=2 scripts/exact.sh build device

test-exact: all ## the same bits on any number of ranks, over shm and mpi: the whole table
	@scripts/exact.sh build

test-accuracy: all ## accuracy of each level of `precision` beside fp32; SEEDS=n
	@scripts/accuracy.sh build $(or $(SEEDS),5)

test-faults: tests ## FAULTS=300 runs in which a rank dies, with a core dump or without, hangs or finds its disk full
	@build/tests/faults/faults build/tests/faults/faulty $(or $(FAULTS),300) $(or $(SEED),1)

test-mutations: ## MUTATIONS=1000 damaged files for each reader of untrusted bytes, under the sanitizers; SEED=n
	@$(SETUP) build optional test
	@cmake --preset asan-ubsan -DCOHORT_ONEDNN=ON $(CMAKE_ARGS)
	@cmake --build --preset asan-ubsan --target fuzz/all -j $(JOBS)
	@scripts/mutations.sh build-asan-ubsan $(or $(MUTATIONS),1000) $(or $(SEED),1)

test-checkpoints: all ## 300 times SIGKILL while checkpoints are written
	@tests/checkpoint/kills.sh build/cohort $(or $(KILLS),300)

test-additions: ## add a strategy and a command to a copy of the tree, build and run them
	@$(SETUP) build optional
	@JOBS=$(JOBS) scripts/additions.sh

test-busy: tests ## the tests beside two busy loops, those with a clock 20 times; ROUNDS=n, REPEATS=n
	@scripts/busy.sh build $(or $(ROUNDS),3) $(or $(REPEATS),20)

test-docs: all ## the outputs that README and docs show beside those of today, slow ones too
	@for page in $(PAGES); do scripts/docs_outputs.sh check all $$page build || [ $$? = 77 ] || exit 1; done

docs-outputs: all ## write today's outputs into README and docs where they differ
	@for page in $(PAGES); do scripts/docs_outputs.sh update all $$page build || [ $$? = 77 ] || exit 1; done

docs: ## README and docs as a site with search into build/site, by MkDocs
	@$(SETUP) docs
	@scripts/site.sh
	@echo 'build/site: python3 -m http.server --directory build/site --bind 127.0.0.1 8000, then http://127.0.0.1:8000'

test-distros: ## Debian 12, 13 and testing, from bare to demo and tests; hours, needs root; RELEASES=..., WHO=root
	@scripts/distros.sh $(RELEASES)

test-arm64: CTEST := ../scripts/arm64.sh run $(CTEST)
test-arm64: ## a build for ARM64 and its tests, under qemu
	@$(SETUP) build optional test arm64
	@scripts/arm64.sh sysroot
	@$(call build,arm64)
	@$(call run,build-arm64,-LE 'slow|style')

test-hosts: all ## training over several hosts, made of namespaces, with sshd; needs root
	@$(SETUP) hosts
	@tests/hosts/hosts.sh build

test-network: tests ## RUNS=24 runs over such hosts with faults of the network; SEED=n, KIND=name; needs root
	@$(SETUP) hosts
	@tests/network/network.sh build $(or $(RUNS),24) $(or $(SEED),1)

test-shards: all ## training on shards over HTTP, from nginx on the loopback interface
	@$(SETUP) shards
	@tests/shards/nginx.sh build

test-plan: all ## what `cohort plan` predicts beside runs; CELLS=all takes half an hour; hosts need root
	@PERCENT=$(or $(PERCENT),50) bench/plan.sh build $(or $(CELLS),quick)
	@if pkg-config --exists simgrid; then cmake --build build --target simulate; fi
	@PERCENT=$(or $(PERCENT),50) bench/simulate.sh build quick || [ $$? -eq 77 ]

test-tune: all ## cohort tune beside the full grid, from configs that are set badly; NETWORKS=mnist-net is 3 minutes
	@CHECK=1 bench/tune.sh build $(NETWORKS)

simulate: all ## plan beside a simulation of clusters by SimGrid's SMPI; POINTS=quick is seconds, all of them an hour
	@$(SETUP) build simulate
	@cmake --preset release >/dev/null && cmake --build build --target simulate
	@bench/simulate.sh build $(or $(POINTS),all)

test-slurm: tests ## training under Slurm, its nodes made of namespaces; installs slurmctld, slurmd, munge; needs root
	@$(SETUP) slurm
	@tests/slurm/slurm.sh build

test-explain: tests ## runs with ten causes planted in five models, and the configs as they are: what cohort explain finds; minutes
	@tests/explain/matrix.sh build/cohort build/tests/explain/plant build/tests/explain/libslow_disk.so . all
	@tests/explain/matrix.sh build/cohort build/tests/explain/plant build/tests/explain/libslow_disk.so . shipped

asan: ## tests under the address, undefined-behaviour and leak sanitizers
	@$(SETUP) build optional test
	@$(call build,asan-ubsan)
	@$(call run,build-asan-ubsan,-LE 'slow|style')

tsan: ## tests with several threads, ranks over MPI too, under the thread sanitizer
	@$(SETUP) build optional test
	@$(call build,tsan)
	@$(call run,build-tsan,-L threads -LE slow)

fuzz: ## fuzz each reader of untrusted bytes for FUZZ_SECONDS
	@$(SETUP) build fuzz
	@$(call build,fuzz)
	@scripts/fuzz.sh build-fuzz $(FUZZ_SECONDS)

coverage: ## which lines the tests run: build-coverage/coverage.txt
	@$(SETUP) build optional test coverage
	@$(call build,coverage)
	@cd build-coverage && $(CTEST) -LE 'slow|style' && \
	    gcovr -r .. -f ../src -o coverage.txt . && tail -n 4 coverage.txt

lint: all ## layout, layers, limits, words, clang-tidy
	@$(SETUP) lint
	@clang-format --dry-run -Werror $(SOURCES)
	@scripts/check_layers.sh
	@scripts/check_limits.sh
	@scripts/check_opens.sh
	@scripts/check_terms.sh
	@scripts/check_test_names.sh
	@scripts/tidy.sh build $(JOBS)

format: ## put every source file into the project's layout
	@$(SETUP) lint
	@clang-format -i $(SOURCES)

bench: all ## measure speed beside PyTorch and MPI where they are installed; NETS=... a part
	@bench/train.sh $(NETS)
	@$(if $(NETS),,bench/comm.sh)

update-counts: tests ## write down how many instructions a step and an all-reduce take now
	@tests/perf/counts.sh build update

bench-comm: all ## measure the sum over two ranks, beside Gloo, Open MPI and MPICH
	@bench/comm.sh

bench-scaling: all ## measure two ranks beside two runs that exchange nothing; NETS=... a part
	@bench/scaling.sh $(NETS)

bench-watch: all ## measure what three viewers of `cohort watch` cost a training; a quiet machine, minutes
	@bench/watch.sh

bench-data: all ## measure how fast images come, beside libjpeg-turbo's own decoder
	@bench/data.sh

# What another user has built, as before `sudo make install`, is installed as it is.
deb: ## Debian packages into build-deb/, checked by lintian; RELEASE=trixie: built there, into build-deb-trixie/
	@$(SETUP) build optional deb $(if $(RELEASE),chroot)
	@scripts/deb.sh $(RELEASE)

dist: ## an archive to unpack and run elsewhere into build-dist/
	@$(SETUP) build optional
	@JOBS=$(JOBS) CMAKE_ARGS="$(CMAKE_ARGS)" scripts/dist.sh

test-packages: deb dist ## install and run both on Debian 12, 13 and testing in chroots; needs root
	@$(SETUP) chroot
	@scripts/test_packages.sh

test-first: deb dist ## from a bare Debian to MNIST fetched, trained on and reported, by three commands; and bad mirrors; needs root
	@$(SETUP) first
	@scripts/deb.sh trixie
	@for how in archive packages; do \
	    for release in trixie "$$(. /etc/os-release && echo $$VERSION_CODENAME)"; do \
	        scripts/first_walk.sh $$release $$how || exit 1; done; done

install: ## install to PREFIX (default /usr/local)
	@[ "$$(stat -c %u build 2>/dev/null || id -u)" != "$$(id -u)" ] || $(MAKE) --no-print-directory all
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX) || { \
	    echo "install: without rights to write there: make install PREFIX=$$HOME/.local" >&2; exit 1; }

uninstall: ## remove what `make install` put there; the same PREFIX
	@DESTDIR=$(DESTDIR) cmake -DPREFIX=$(PREFIX) -P cmake/Uninstall.cmake

clean: ## remove what was built
	rm -rf build build-arm64 build-asan-ubsan build-coverage build-debug build-fuzz build-mpi build-tsan
