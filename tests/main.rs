//! Drives the real program in temporary folders.

mod axes;
mod browser;
mod cache;
mod claims;
mod command;
mod crash;
mod data;
mod errors;
mod examples;
mod export;
mod golden;
mod house;
mod lab;
mod models;
mod output;
mod papers;
mod processes;
mod readme;
mod report;
mod report_browser;
mod report_large;
mod report_size;
mod schedule;
mod serve;
mod text;
