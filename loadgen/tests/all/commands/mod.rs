//! The program as others use it, a file for each part of the command line.
//! `tests/generator/test_contract.py` holds orders and results against the committed schemas.

mod exits;
mod files;
mod flags;
mod log;
mod merge;
mod once;
mod prometheus;
mod serve;
mod signals;

use std::process::{Command, Output};

fn loadgen(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(args);
    command
}

fn output(args: &[&str]) -> Output {
    loadgen(args).output().expect("loadgen")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
