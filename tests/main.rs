//! Drives the real program in temporary folders.

mod audit;
mod axes;
mod cache;
mod claims;
mod command;
mod crash;
mod data;
mod errors;
mod examples;
mod exchange;
mod faults;
mod golden;
mod house;
mod lab;
mod models;
mod output;
mod papers;
mod processes;
mod readme;
mod sandbox;
mod schedule;
mod stream;
mod text;
mod trust;
mod unsafe_code;
mod verify;
