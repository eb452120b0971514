//! `loadgen merge`: one result of several clients.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::exit::{Stop, print};
use super::verdict;
use crate::cli::threshold::Threshold;
use crate::given;
use crate::order::SCHEMA;
use crate::output::merge::{Named, merge};
use crate::output::result::SlotResult;
use crate::output::table;

const EXAMPLES: &str = "\
Examples:
  loadgen run -r 5000 --json http://10.0.0.5/ > a.json     on each of several machines, at once
  loadgen merge a.json b.json --fail-if 'p99>50ms'         as if one client had done it all

Exit codes: those of `loadgen run`.";

/// Merge results of clients that loaded a server at the same time.
///
/// Counts and throughput add up. Histograms of latency do so exactly, so that percentiles are those
/// of all requests. Results with other loops, protocols, ramp-ups or lengths are refused.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files of `loadgen run --json`; - is standard input
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// Print the result as JSON [default: a table]
    #[arg(long)]
    json: bool,
    /// Exit with 5 when a figure of all clients crosses a limit, as `loadgen run` does: 'p99>50ms';
    /// may be repeated [default: none]
    #[arg(long, value_name = "LIMIT")]
    fail_if: Vec<Threshold>,
}

pub fn main(args: &Args) -> Result<u8, Stop> {
    let mut parts = Vec::new();
    for file in &args.results {
        parts.extend(read(file)?);
    }
    let result = merge(&parts)?;
    print(&match args.json {
        true => serde_json::to_string(&result).map_err(|error| error.to_string())? + "\n",
        false => table::render(&result),
    })?;
    let clients: Vec<SlotResult> = parts.into_iter().map(|part| part.result).collect();
    Ok(verdict::of(&result, &args.fail_if, &clients))
}

/// The results in a file, one a line.
fn read(file: &Path) -> Result<Vec<Named>, String> {
    let name = file.display();
    let text = match file == Path::new("-") {
        true => given::text_of(io::stdin()),
        false => given::read_to_string(file),
    };
    let text = text.map_err(|error| format!("{name}: {error}"))?;
    let lines: Vec<_> =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return Err(format!("{name}: is empty; write `loadgen run --json … > {name}`"));
    }
    let several = lines.len() > 1;
    let named = |(index, line): (usize, &str)| -> Result<Named, String> {
        let name = if several { format!("{name}:{}", index + 1) } else { name.to_string() };
        let result = result(line).map_err(|why| format!("{name}: {why}"))?;
        Ok(Named { name, result })
    };
    lines.into_iter().map(named).collect()
}

/// What each version of the contract has.
#[derive(Deserialize)]
struct Version {
    schema: u32,
}

fn result(line: &str) -> Result<SlotResult, String> {
    match serde_json::from_str(line) {
        Ok(Version { schema }) if schema != SCHEMA => Err(format!(
            "is of version {schema} of the contract, and this program reads version {SCHEMA}; load \
             from all machines with the same version of it"
        )),
        _ => serde_json::from_str(line).map_err(|error| {
            format!("is no result of `loadgen run --json`: {error}; give its whole output")
        }),
    }
}
