/* test_hints.c - options with other programs' names get a hint with Cohort's, and the hint can be
   typed as printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fixtures.h"
#include "cli/program.h"

typedef struct hint_case {
    const char *line, *words;
} hint_case;

static void assert_hints(const hint_case *cases, size_t n)
{
    program_write_text("a.yaml", FIXTURES_CONFIG);
    for (size_t i = 0; i < n; i++)
        program_assert_error(program_line(cases[i].line), 2, cases[i].words);
}

#define ASSERT_HINTS(cases) assert_hints(cases, sizeof(cases) / sizeof((cases)[0]))

static void hint_for_key_of_other_program_is_given(void **state)
{
    static const hint_case cases[] = {
        {"train a.yaml -s batch_size=3", "unknown key 'batch_size'; here it is `batch: 128`"},
        {"train a.yaml -s learning_rate=3",
         "here it is a key of `optimizer`: `optimizer: {lr: 0.1}`"},
        {"train a.yaml -s lr=0.1", "`optimizer: {lr: 0.1}`"},
        {"train a.yaml -s optimizer.learning-rate=3", "here it is `lr: 0.1`"},
        {"train a.yaml -s num_workers=3", "`loader: {threads: 2}`"},
        {"train a.yaml -s loader.num_workers=3", "here it is `threads: 2`"},
        {"train a.yaml -s data.batch_size=3", "at the top of a config is `batch: 128`"},
        {"train a.yaml -s momentum=0.9", "it is a key of some optimizers: `optimizer: "},
        {"train a.yaml -s optimizer.betas=3",
         "unknown key 'betas'; it is a key of some optimizers"},
        {"train a.yaml -s weight_decay=0.9", "`optimizer: {weight_decay: 1e-4}`"},
        {"train a.yaml -s world_size=2", "`ranks: 2`"},
        {"train a.yaml -s gpus=2", "`ranks: 2`"},
        {"train a.yaml -s amp=true", "`precision: bf16`"},
        {"train a.yaml -s fp16=true", "`precision: bf16`"},
        {"train a.yaml -s max_epochs=2", "`epochs: 10`"},
        {"train a.yaml -s checkpoint_dir=x", "--run-dir DIR"},
        {"train a.yaml -s log_interval=10", "`log_every: 50`"},
        {"train a.yaml -s Batch=10", "did you mean 'batch'"},
        {"train a.yaml -s checkpoint.interval=1", "there are every, keep, best, on_error"},
        {"train a.yaml -s zzzzzzzz=1", "`cohort list config` explains them"},
        {"train a.yaml -s clip=1.0", "such as {norm: 1.0}"},
    };

    (void)state;
    ASSERT_HINTS(cases);
}

static void hint_for_name_of_other_program_is_given(void **state)
{
    static const hint_case cases[] = {
        {"train a.yaml -s optimizer=AdamW", "did you mean 'adamw'"},
        {"train a.yaml -s optimizer=Adam", "did you mean 'adam'"},
        {"train a.yaml -s optimizer=SGD", "did you mean 'sgd'"},
        {"train a.yaml -s optimizer=RMSprop", "there are sgd, "},
        {"train a.yaml -s strategy=fsdp", "every rank holds the whole network here"},
        {"train a.yaml -s strategy=ZeRO-2", "every rank holds the whole network here"},
        {"train a.yaml -s strategy=ddp", "here that is `sync`"},
        {"train a.yaml -s strategy=horovod", "here that is `sync`"},
        {"train a.yaml -s strategy=One_Shot", "did you mean 'one-shot'"},
        {"train a.yaml -s schedule=CosineAnnealingLR", "here that is `cosine`"},
        {"train a.yaml -s data=ImageNet", "`imagefolder`"},
        {"train a.yaml -s backend=nccl", "ranks of one machine share memory"},
        {"train a.yaml -s precision=amp", "autocast"},
        {"train a.yaml -s on_failure=restart", "`respawn`"},
    };

    (void)state;
    ASSERT_HINTS(cases);
}

static void hint_for_key_as_option_is_given(void **state)
{
    static const hint_case cases[] = {
        {"train a.yaml --epochs 3", "`--set epochs=3`"},
        {"train a.yaml --epochs=3", "`--set epochs=3`"},
        {"train a.yaml --epochs", "`--set epochs=VALUE`"},
        {"train a.yaml --batch-size 32", "`--set batch=32`"},
        {"train a.yaml --lr 0.1", "`--set optimizer.lr=0.1`"},
        {"train a.yaml --optimizer.lr 0.1", "`--set optimizer.lr=0.1`"},
        {"train a.yaml --max-steps -n 2", "`--set max_steps=VALUE`"},
        {"train a.yaml --nproc_per_node 4", "`-n 4`"},
        {"train a.yaml --output_dir x", "--run-dir DIR"},
        {"train a.yaml --save-every", "`--set 'checkpoint.every=1 epoch'`"},
        {"train a.yaml --rnks 2", "did you mean '--ranks'"},
        {"bench train a.yaml --epochs 3", "`--set epochs=3`"},
        /* this command takes no keys */
        {"ctl a status --epochs 3", "unknown option '--epochs'; see `cohort ctl --help`"},
    };

    (void)state;
    ASSERT_HINTS(cases);
}

/* Some of the other names of keys. */
static const char *const hints_names[] = {
    "batch_size",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "num_epochs",
    "max_iters",
    "max_time",
    "learning_rate",
    "weight_decay",
    "warmup",
    "grad_clip",
    "clip_value",
    "criterion",
    "label_smoothing",
    "random_seed",
    "num_workers",
    "prefetch",
    "sampler",
    "mixed_precision",
    "num_threads",
    "ddp",
    "bucket_cap_mb",
    "compression",
    "sync_bn",
    "ema_decay",
    "model_ema",
    "early_stopping",
    "validate",
    "eval_every",
    "print_freq",
    "tensorboard_dir",
    "save_every",
    "save_top_k",
    "save_best",
    "elastic",
    "dist_timeout",
    "num_classes",
    "scheduler",
    "opt",
    "image_size",
    "transforms",
    "normalization",
};

/* Put the hint's text on a command line: `--set path=example`. */
static void hint_typed_as_printed_is_accepted(void **state)
{

    (void)state;
    program_write_text("a.yaml", FIXTURES_CONFIG);
    for (size_t i = 0; i < sizeof(hints_names) / sizeof(hints_names[0]); i++) {
        const program_options options = {.timeout_s = 0};
        char option[64], set[256];
        const program_result *r;
        const char *args[] = {"train", "a.yaml", option, NULL};
        const char *again[] = {"train", "a.yaml", "-q",       "--run-dir", "typed",       "-s",
                               set,     "-s",     "epochs=1", "-s",        "max_steps=1", NULL};
        const char *at;
        size_t n;

        snprintf(option, sizeof(option), "--%s", hints_names[i]);
        r = program_run(args, &options);
        at = strstr(r->err, "`--set ");
        if (!at) {
            fail_msg("%s: no --set in: %s", hints_names[i], r->err);
            return;
        }
        at += strlen("`--set ");
        at += *at == '\'';
        n = strcspn(at, "`'");
        snprintf(set, sizeof(set), "%.*s", (int)n, at);
        r = program_run(again, &options);
        if (r->exit_code != 0)
            fail_msg("%s: --set %s: %s", hints_names[i], set, r->err);
        program_remove("typed");
    }
}

static void train_oversubscribed_ranks_are_warned_of(void **state)
{
    const program_result *r;

    (void)state;
    program_write_text("a.yaml", FIXTURES_CONFIG);
    r = program_line("train a.yaml -n 1 -q --run-dir one");
    program_assert_success(r);
    assert_null(strstr(r->err, "take turns"));
    /* more ranks than samples are rejected before any starts */
    program_assert_error(program_line("train a.yaml -n 1024 -q --run-dir many"), 2, "1024 ranks");
}

static void train_warmup_beyond_the_end_is_warned_of(void **state)
{
    const program_result *r;

    (void)state;
    program_write_text("a.yaml", FIXTURES_CONFIG);
    r = program_line("train a.yaml -n 2 -q --run-dir rising -s schedule.unit=step "
                     "-s schedule.warmup=4 -s max_steps=3");
    program_assert_success(r);
    assert_string_equal(r->err, "cohort: warning: schedule.warmup takes 4 updates, and the run has "
                                "3: the rate never reaches optimizer.lr\n");
    r = program_line("train a.yaml -n 2 -q --run-dir risen -s schedule.unit=step "
                     "-s schedule.warmup=3 -s max_steps=3");
    program_assert_success(r);
    assert_string_equal(r->err, "");
}

/* Groups and a dilation: convolutions that no kernel of the backend cpu takes. */
static void train_layer_on_reference_kernels_is_said(void **state)
{
    const program_result *r;

    (void)state;
    program_write_text("slow.yaml",
                       "layers:\n"
                       "  - conv2d: {out: 8, kernel: 3, groups: 4, dilation: 2}\n"
                       "  - flatten\n"
                       "  - linear: 4\n"
                       "data: {name: synthetic, shape: [4, 8, 8], classes: 4, samples: 64}\n"
                       "batch: 32\n"
                       "epochs: 1\n");
    r = program_line("train slow.yaml --run-dir slow -s backend=cpu");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "slow: reference kernels run "));
    assert_non_null(strstr(r->out, "most of them in conv2d0; `backend: auto`"));
    r = program_line("train slow.yaml --run-dir asked -s backend=ref");
    program_assert_success(r);
    assert_null(strstr(r->out, "reference kernels"));
    program_write_text("a.yaml", FIXTURES_CONFIG);
    r = program_line("train a.yaml --run-dir fast");
    program_assert_success(r);
    assert_null(strstr(r->out, "reference kernels"));
}

static void output_of_one_is_singular(void **state)
{
    const program_result *r;

    (void)state;
    program_write_text("a.yaml", FIXTURES_CONFIG);
    r = program_line("train a.yaml --run-dir singular -s max_steps=1");
    program_assert_success(r);
    assert_non_null(strstr(r->out, "1 rank ("));
    assert_non_null(strstr(r->out, ", 1 step\n"));
    assert_non_null(strstr(r->out, "1 step in "));
    assert_null(strstr(r->out, "1 steps"));
    assert_null(strstr(r->out, "1 ranks"));
    r = program_line("train a.yaml --run-dir untested -s max_steps=1 -s evaluate=false");
    program_assert_success(r);
    assert_non_null(strstr(r->out, " no test samples"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hint_for_key_of_other_program_is_given),
        cmocka_unit_test(hint_for_name_of_other_program_is_given),
        cmocka_unit_test(hint_for_key_as_option_is_given),
        cmocka_unit_test(hint_typed_as_printed_is_accepted),
        cmocka_unit_test(train_oversubscribed_ranks_are_warned_of),
        cmocka_unit_test(train_warmup_beyond_the_end_is_warned_of),
        cmocka_unit_test(train_layer_on_reference_kernels_is_said),
        cmocka_unit_test(output_of_one_is_singular),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
