"""Tune a scikit-learn pipeline for accuracy and training time, then choose under another goal."""

from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import tradewind as tw

X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)

search = tw.TradeoffSearchCV(
    make_pipeline(StandardScaler(), SVC()),
    {
        "svc__C": loguniform(1e-2, 1e3),
        "svc__gamma": loguniform(1e-4, 1e-1),
        "standardscaler": ["passthrough", StandardScaler()],
    },
    goal=tw.Tradeoff(alpha=0.5, reference=0.1),  # ten milliseconds are worth five points
    train_sizes=[0.25, 0.5, 1.0],
    n_iter=20,
    cv=3,
    random_state=0,
)
search.fit(X, y)
print(f"best: {search.best_score_:.1%} with {search.best_train_size_:.0%} of the rows")
print(f"      {search.best_params_}")
print(f"      {search.score(X_test, y_test):.1%} on new rows")

print("\nthe frontier:")
for c in search.frontier_:
    print(f"{c.score:.1%} in {c.cost:.3f} s with {c.train_size:.0%} of the rows")

search.select(tw.Quality())  # the best of the same candidates if time does not matter
print(f"\nfor quality alone: {search.best_score_:.1%}, {search.best_params_}")
