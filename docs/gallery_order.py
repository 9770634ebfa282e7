"""The order in which the gallery is read."""

ORDER = [
    "first_steps",
    "projection",
    "units",
    "relevance",
    "table",
    "contributions",
    "columns",
    "several_kernels",
    "invariances",
    "parabolas",
    "components",
    "oriented",
    "canonical",
    "leave_one_out",
    "loo_map",
    "calibration",
    "logistic_probabilities",
    "uncertainty",
    "regression_intervals",
    "centers",
    "online_drift",
    "pairs",
    "sparse_path",
    "sparse_sinc",
    "sinc_noise",
    "sparse_spirals",
    "programs",
    "two_features",
    "outputs",
    "boosting",
    "novelty",
    "kernels",
    "strings",
    "sequences",
    "fisher_worst_case",
]


def reading_order(filename):
    """The place of a script; those not listed come last, by name."""
    name = filename.removeprefix("plot_").removesuffix(".py")
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)
