"""
Probabilities without a second fit
==================================

Reliability of probabilities from leave-one-out scores, compared with a calibrated ``SVC``.

``predict_proba`` is calibrated on leave-one-out outputs, which come with the fit. A support vector machine
has to be fitted again for its probabilities: ``CalibratedClassifierCV`` does so in an inner cross-validation.
Here are both, each fitted on 400 rows of the waveform problem and evaluated on 10,000 new ones.

A point on the diagonal means that of the rows with a predicted probability of 30 %, 30 % belong to the class. Both
models predict too low a probability between 0.2 and 0.6: the logistic curve (Platt scaling) they share is slightly
too simple for these classes.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.metrics import brier_score_loss
from sklearn.svm import SVC

from mercer import KernelFisherClassifier
from mercer.datasets import make_waveform

X, y = make_waveform(400, random_state=0)
X_new, y_new = make_waveform(10_000, random_state=1)
models = {
    "KernelFisherClassifier": KernelFisherClassifier(),
    "SVC, calibrated by 5-fold CV": CalibratedClassifierCV(SVC(), ensemble=False),
}
colors = ["#0072B2", "#D55E00"]

fig, ax = plt.subplots(figsize=(6.5, 6), layout="constrained")
for color, (name, model) in zip(colors, models.items()):
    model.fit(X, y)
    brier = brier_score_loss(y_new, model.predict_proba(X_new)[:, 1])
    CalibrationDisplay.from_estimator(
        model, X_new, y_new, n_bins=10, name=f"{name} (Brier score {brier:.4f})", color=color, ax=ax
    )
ax.set(xlabel="predicted probability of class 1, mean of a bin", ylabel="share of class 1 in the bin")
plt.show()

# %%
# Labels and probabilities of ``KernelFisherClassifier`` agree by construction; the labels of a support vector
# machine and its calibrated probabilities need not.

machine = SVC().fit(X, y)
calibrated = models["SVC, calibrated by 5-fold CV"]
differ = machine.predict(X_new) != calibrated.predict(X_new)
print(f"SVC and its calibrated version differ on {differ.sum()} of {len(differ)} rows")
