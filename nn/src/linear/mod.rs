//! Linear classifiers of bags of words and of mean or concatenated vectors.

mod bag_of_words;
mod features;
mod naive_bayes;
mod svm;
pub use features::{Features, TermWeighting, Vectors};
pub use naive_bayes::NaiveBayes;
pub use svm::{LinearSvm, StepSize, SvmSpec, SvmTexts};
