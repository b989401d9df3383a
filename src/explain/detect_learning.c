/* detect_learning.c - causes in how a run learns: rate, gradients, augmentation; and its loss. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "explain/detectors.h"

#define LEARNING_STEPS 60    /* a run of fewer has not had its chance */
#define LEARNING_NONE  0.93  /* of the loss of guessing: nothing was learned */
#define LEARNING_SLOW  0.995 /* of the first loss: it falls, if slowly */
#define RATE_MOVED     2.0   /* lengths of the initial weights that all together have moved */
#define RATE_ROSE      1.5   /* times the first loss that a later one was */

/* The loss of one who guesses among the classes, or that of the first steps; NaN: not known. */
static double learning_guess(const co_evidence *e)
{
    const co_evidence_curve *curve = &e->run.step;

    if (co_evidence_learns_classes(e))
        return log((double)e->data.classes);
    return curve->n ? curve->at[0].train_loss : (double)NAN;
}

static bool learning_failed(const co_evidence *e)
{
    return co_evidence_last_loss(&e->run) > LEARNING_NONE * learning_guess(e) &&
           e->run.steps >= LEARNING_STEPS;
}

/* The largest loss against the first. */
static double learning_rise(const co_evidence_curve *curve)
{
    double most = 0;

    for (size_t i = 0; i < curve->n; i++)
        most = fmax(most, curve->at[i].train_loss);
    return curve->n && curve->at[0].train_loss > 0 ? most / curve->at[0].train_loss : 0;
}

static double learning_lr(const co_evidence *e)
{
    double most = (double)NAN;

    for (size_t i = 0; i < e->run.step.n; i++)
        most = fmax(most, e->run.step.at[i].lr);
    return most;
}

static void rate_say(co_finding *out, const co_evidence *e)
{
    const double lr = learning_lr(e), guess = learning_guess(e);
    char rate[64] = "";

    DETECT_TITLE(out, "the learning rate is too high");
    if (!isnan(lr))
        snprintf(rate, sizeof(rate), " (highest so far: %.3g)", lr);
    DETECT_REMEDY(out,
                  "optimizer.lr: a tenth of it to begin with%s; `schedule` with warmup, or "
                  "clip.norm, where it has to be high",
                  rate);
    if (strstr(e->run.failure, "diverged")) {
        DETECT_EVIDENCE(out, "the run ended: %.300s", CO_SHOW(e->run.failure));
        return;
    }
    DETECT_EVIDENCE(out,
                    "after %llu steps the loss is %.3g, that of guessing %.3g; it rose to %.3g "
                    "times the first one, and the weights moved by %.3g times their length",
                    (unsigned long long)e->run.steps, co_evidence_last_loss(&e->run), guess,
                    learning_rise(&e->run.step),
                    e->weights.known ? e->weights.change : (double)NAN);
}

static bool detect_rate(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    const bool moved = e->weights.known && e->weights.drawn && e->weights.change > RATE_MOVED;

    if (co_finding_has(earlier, n, "wrong-normalisation") ||
        co_finding_has(earlier, n, "shuffled-labels"))
        return false;
    if (!strstr(e->run.failure, "diverged") &&
        !(learning_failed(e) && (moved || learning_rise(&e->run.step) > RATE_ROSE)))
        return false;
    rate_say(out, e);
    return true;
}

const co_detector co_detect_rate = {
    .name = "high-rate",
    .summary = "a learning rate at which training diverges or learns nothing",
    .find = detect_rate,
};

#define GRADIENT_GROWN 30.0
#define GRADIENT_SIZE  100.0

static bool detect_gradient(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    const co_evidence_curve *curve = &e->run.step;
    double first = (double)NAN, last = (double)NAN;

    for (size_t i = 0; i < curve->n; i++) {
        if (isnan(first))
            first = curve->at[i].gradient_norm;
        if (!isnan(curve->at[i].gradient_norm))
            last = curve->at[i].gradient_norm;
    }
    if (co_finding_has(earlier, n, "high-rate") || !(last > GRADIENT_GROWN * first) ||
        !(last > GRADIENT_SIZE))
        return false;
    DETECT_TITLE(out, "the gradient explodes");
    DETECT_EVIDENCE(out, "its norm grew from %.3g to %.3g", first, last);
    if (e->spec.clip_norm > 0 && e->spec.clip_norm <= first) {
        DETECT_REMEDY(out,
                      "optimizer.lr: a lower one, or a `schedule` with warmup; clip.norm is %.3g "
                      "already",
                      e->spec.clip_norm);
        return true;
    }
    DETECT_REMEDY(out, "clip.norm: %.3g, about what it was at first; or a lower optimizer.lr",
                  first);
    return true;
}

const co_detector co_detect_gradient = {
    .name = "exploding-gradient",
    .summary = "a norm of the gradient that grows without bound",
    .find = detect_gradient,
};

#define AUGMENT_GAP    0.2 /* of test accuracy above that of training */
#define AUGMENT_EPOCHS 3

static bool detect_augmentation(co_finding *out, const co_evidence *e, const co_finding *earlier,
                                int n)
{
    const double train = co_evidence_last_accuracy(&e->run, false),
                 test = co_evidence_last_accuracy(&e->run, true);
    const co_value *data = e->spec.data;
    const co_value *augment =
        data && data->kind == CO_VALUE_MAP ? co_value_get(data, "augment") : NULL;

    (void)earlier;
    (void)n;
    if (!augment || e->run.epoch.n < AUGMENT_EPOCHS || !(test - train > AUGMENT_GAP))
        return false;
    DETECT_TITLE(out, "augmentation is too strong");
    DETECT_EVIDENCE(out,
                    "after %zu epochs the accuracy on augmented training samples is %.1f%%, on "
                    "plain test samples %.1f%%",
                    e->run.epoch.n, 100 * train, 100 * test);
    DETECT_REMEDY(out, "data.augment: fewer or weaker changes, or train for longer");
    return true;
}

const co_detector co_detect_augmentation = {
    .name = "strong-augmentation",
    .summary = "training samples that are much harder than the test split",
    .find = detect_augmentation,
};

static bool detect_loss(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    for (int i = 0; i < n; i++)
        if (isnan(earlier[i].gain) && strcmp(earlier[i].cause, "duplicated-test") != 0 &&
            strcmp(earlier[i].cause, "label-imbalance") != 0)
            return false; /* that is why */
    if (!learning_failed(e) || (e->run.step.n && co_evidence_last_loss(&e->run) <
                                                     LEARNING_SLOW * e->run.step.at[0].train_loss))
        return false;
    DETECT_TITLE(out, "the loss does not fall");
    DETECT_EVIDENCE(out, "after %llu steps it is %.4g; guessing has %.4g",
                    (unsigned long long)e->run.steps, co_evidence_last_loss(&e->run),
                    learning_guess(e));
    DETECT_REMEDY(out, "optimizer.lr: try ten times as much and a tenth; epochs: the run may be "
                       "too short");
    return true;
}

const co_detector co_detect_loss = {
    .name = "loss-not-falling",
    .summary = "a loss that stays at that of guessing, for no reason found",
    .find = detect_loss,
};
