"""Serves a scikit-learn model."""

import pickle

import ablate

with open("model.pkl", "rb") as file:
    model = pickle.load(file)
ablate.serve(predict=model.predict_proba)
