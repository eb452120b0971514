//! The command line: one file per command.

mod exit;
mod merge;
mod null_server;
mod proto;
mod relay;
mod run;
mod serve;
mod signals;
pub mod threshold;
pub mod units;
mod verdict;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(version, about = "An exact and cheap HTTP load generator")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Merge(merge::Args),
    Serve(serve::Args),
    NullServer(null_server::Args),
    Relay(relay::Args),
    Proto(proto::Args),
}

pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|refusal| run::explain(refusal).exit());
    let outcome = match cli.command {
        Command::Run(args) => run::main(&args),
        Command::Merge(args) => merge::main(&args),
        Command::Serve(args) => serve::main(&args),
        Command::NullServer(args) => null_server::main(&args),
        Command::Relay(args) => relay::main(&args),
        Command::Proto(_) => proto::main(),
    };
    ExitCode::from(outcome.unwrap_or_else(|stop| {
        exit::notify(&stop.message);
        stop.code
    }))
}
