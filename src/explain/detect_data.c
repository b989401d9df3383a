/* detect_data.c - causes in the data: values, labels, duplicates. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/text.h"
#include "explain/detectors.h"

/* Bytes from 0 to 1 have a mean below 1 and a standard deviation of 0.2 to 0.35; normalised, 0 and
   1 about. What is far from both is neither. */
#define DATA_MAX_MEAN 2.0
#define DATA_MIN_STD  0.1
#define DATA_MAX_STD  4.0

static bool detect_normalisation(co_finding *out, const co_evidence *e, const co_finding *earlier,
                                 int n)
{
    const co_evidence_data *d = &e->data;

    (void)earlier;
    (void)n;
    for (int c = 0; d->known && d->images && c < d->channels; c++) {
        if (fabs(d->mean[c]) <= DATA_MAX_MEAN && d->std[c] >= DATA_MIN_STD &&
            d->std[c] <= DATA_MAX_STD)
            continue;
        DETECT_TITLE(out, "the input is not normalised as its values are");
        DETECT_EVIDENCE(out,
                        "channel %d reaches the network with mean %.3g and standard deviation "
                        "%.3g; 0 and 1 are expected",
                        c, d->mean[c], d->std[c]);
        DETECT_REMEDY(out, "data.normalize: mean and std of values from 0 to 1, as `cohort data "
                           "info CONFIG` measures them");
        return true;
    }
    return false;
}

const co_detector co_detect_normalisation = {
    .name = "wrong-normalisation",
    .summary = "inputs far from mean 0 and standard deviation 1",
    .find = detect_normalisation,
};

#define LABELS_MIN   200  /* samples that class means were judged by */
#define LABELS_Z     4.0  /* standard deviations of chance */
#define LABELS_ABOVE 0.05 /* accuracy above guessing that a run may have */

static bool detect_labels(co_finding *out, const co_evidence *e, const co_finding *earlier, int n)
{
    const co_evidence_data *d = &e->data;
    const double test = co_evidence_last_accuracy(&e->run, true);
    const double run = isnan(test) ? co_evidence_last_accuracy(&e->run, false) : test;
    const double chance = sqrt(d->guess * (1 - d->guess) / (double)(d->judged ? d->judged : 1));

    (void)earlier;
    (void)n;
    if (!d->known || d->judged < LABELS_MIN || isnan(run) || run > d->guess + LABELS_ABOVE ||
        d->nearest - d->guess > LABELS_Z * chance)
        return false;
    DETECT_TITLE(out, "labels have nothing to do with the images");
    DETECT_EVIDENCE(out,
                    "the nearest class mean of pixels is right for %.1f%% of %" PRIu64
                    " training samples, guessing for %.1f%%; the run reached %.1f%%",
                    100 * d->nearest, d->judged, 100 * d->guess, 100 * run);
    DETECT_REMEDY(out, "data.path: look whether files of labels and of images belong together and "
                       "have one order");
    return true;
}

const co_detector co_detect_labels = {
    .name = "shuffled-labels",
    .summary = "labels that are independent of the images",
    .find = detect_labels,
};

#define DUPLICATES_SHARE 0.005 /* of test samples */

static bool detect_duplicates(co_finding *out, const co_evidence *e, const co_finding *earlier,
                              int n)
{
    const co_evidence_data *d = &e->data;
    const double looked = (double)d->test_hashed, train = (double)d->in_train,
                 repeated = (double)d->repeated;

    (void)earlier;
    (void)n;
    if (!d->known || looked <= 0 || train + repeated < DUPLICATES_SHARE * looked)
        return false;
    DETECT_TITLE(out, train >= repeated ? "test samples are training samples, too"
                                        : "the test split has samples more than once");
    DETECT_EVIDENCE(out,
                    "by their decoded pixels %" PRIu64 " of %" PRIu64
                    " test samples looked at are among %" PRIu64 " training samples, %" PRIu64
                    " repeat a test sample; one is %.120s",
                    d->in_train, d->test_hashed, d->train_hashed, d->repeated, CO_SHOW(d->example));
    DETECT_REMEDY(out, "data.path: take them out of the test split; test accuracy says too much "
                       "as it is");
    return true;
}

const co_detector co_detect_duplicates = {
    .name = "duplicated-test",
    .summary = "test samples that are in the training split, or there twice",
    .find = detect_duplicates,
};

#define IMBALANCE_RATIO 10.0

static bool detect_imbalance(co_finding *out, const co_evidence *e, const co_finding *earlier,
                             int n)
{
    const co_evidence_data *d = &e->data;

    (void)earlier;
    (void)n;
    if (!co_evidence_learns_classes(e) || d->commonest == 0 || d->rarest == UINT64_MAX ||
        (double)d->commonest < IMBALANCE_RATIO * (double)d->rarest)
        return false;
    DETECT_TITLE(out, "classes are of very different sizes");
    DETECT_EVIDENCE(out,
                    "the commonest has %" PRIu64 " training samples, the rarest %" PRIu64
                    "; %" PRId64 " of %" PRId64 " have none",
                    d->commonest, d->rarest, d->absent, d->classes);
    DETECT_REMEDY(out, "metrics: f1_macro shows what accuracy hides; more samples of "
                       "the rare classes help");
    return true;
}

const co_detector co_detect_imbalance = {
    .name = "label-imbalance",
    .summary = "a class with ten times the samples of another",
    .find = detect_imbalance,
};
