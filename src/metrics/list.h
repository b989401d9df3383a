/* list.h - every metric, in the order that `cohort list metrics` prints: of METRIC(NAME) metrics.h
   makes the declaration of co_metric_NAME, and registry.c its entry. */
METRIC(loss)
METRIC(accuracy)
METRIC(accuracy_top5)
METRIC(perplexity)
METRIC(bits_per_byte)
METRIC(label_accuracy)
METRIC(f1_micro)
METRIC(f1_macro)
METRIC(mae)
METRIC(rmse)
METRIC(r2)
