"""Which rows: nested subsets of a training set, labels and groups, folds, and racing."""
