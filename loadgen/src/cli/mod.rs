//! The command line: one file per command.

mod null_server;
mod relay;
mod run;
mod serve;
mod signals;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Everything went as asked.
const OK: u8 = 0;
/// Some requests failed, or none was answered.
const FAILED: u8 = 1;
/// The client was the limit in some windows.
const CLIENT_BOUND: u8 = 3;
/// The command line or an order is wrong, or the run couldn't start.
const USAGE: u8 = 2;

#[derive(Debug, Parser)]
#[command(version, about = "An exact and cheap HTTP load generator")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Serve(serve::Args),
    NullServer(null_server::Args),
    Relay(relay::Args),
}

pub fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => run::main(&args),
        Command::Serve(args) => serve::main(&args),
        Command::NullServer(args) => null_server::main(&args),
        Command::Relay(args) => relay::main(&args),
    };
    ExitCode::from(outcome.unwrap_or_else(|message| {
        eprintln!("loadgen: {message}");
        USAGE
    }))
}
