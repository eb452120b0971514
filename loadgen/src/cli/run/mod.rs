//! `loadgen run`: load for people.

mod args;
mod once;
mod order;
mod replay;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

pub use args::{Args, explain};

use super::exit::{CLIENT_BOUND, FAILED, OK, Stop, print, tell, unwritten};
use super::signals;
use crate::engine::{EndedBy, Measured, Plan, Window};
use crate::output::live::LiveLine;
use crate::output::result::SlotResult;
use crate::output::threshold::Threshold;
use crate::output::{csv, hdr, table};

pub fn main(args: &Args) -> Result<u8, Stop> {
    args.check()?;
    let (order, notes) = order::build(args)?;
    crate::order::check::check(&order)?;
    notes.iter().for_each(|note| tell(note));
    let plan = Arc::new(Plan::new(order)?);
    if args.requests.once {
        let (text, is_valid) = once::show(&plan)?;
        print(&text)?;
        return Ok(if is_valid { OK } else { FAILED });
    }
    // A file that can't be written must not cost the figures.
    let csv = Sink::create("--csv", args.output.csv.as_deref())?;
    let hdr = Sink::create("--hdr", args.output.hdr.as_deref())?;
    let measured = measure(args, &plan)?;
    let result = SlotResult::new(&plan, &measured);
    let text = match args.output.json {
        true => serde_json::to_string(&result).map_err(|error| error.to_string())? + "\n",
        false => table::render(&result, &measured.response_time),
    };
    let printed = print(&text);
    csv.write(|| csv::render(&measured.sum.windows))?;
    hdr.write(|| hdr::render(&measured.response_time))?;
    printed?;
    Ok(verdict(args, &measured, &result))
}

fn measure(args: &Args, plan: &Arc<Plan>) -> Result<Measured, String> {
    let (mut engine, _) =
        signals::engine(args.load.cpus.as_ref(), args.load.threads, &Arc::default())
            .map_err(|error| error.to_string())?;
    let mut live = LiveLine::new(!args.output.quiet && io::stderr().is_terminal());
    let mut on_window = |window: &Window| live.show(window);
    let measured = engine.run(plan, &mut on_window).map_err(|error| error.to_string());
    live.clear();
    measured
}

/// The exit code; what is behind it goes to standard error.
fn verdict(args: &Args, measured: &Measured, result: &SlotResult) -> u8 {
    let crossed: Vec<_> =
        args.checks.fail_on.iter().filter(|limit| limit.is_crossed(result)).collect();
    for limit in &crossed {
        tell(&format!("{limit} is true: it is {}", limit.actual(result)));
    }
    let interrupted = measured.ended_by == EndedBy::Interrupt;
    // Who says how many may fail has the say.
    let tolerates = args.checks.fail_on.iter().any(Threshold::is_about_failures);
    if !crossed.is_empty()
        || result.whole.seen.failures.total() > 0 && !tolerates
        || result.whole.unanswered > 0 && !interrupted
        || result.requests.completed == 0
    {
        return FAILED;
    }
    let client = &result.client;
    let bound = if args.checks.leave_out_client_bound { 0 } else { client.bound_windows };
    // Where none could be left out, all were bad.
    let all_bad = client.bound_windows + client.still_windows > 0 && client.left_out_windows == 0;
    if bound > 0 || all_bad {
        tell(&format!(
            "the client was the limit in {} of {} windows, and stood still in {}; give it more \
             threads (-t) or CPUs, run for longer (-d), or leave out windows in which it was the \
             limit (--leave-out-client-bound)",
            client.bound_windows, client.windows, client.still_windows
        ));
        return CLIENT_BOUND;
    }
    OK
}

/// A file for one kind of output, if one was asked for.
struct Sink(Option<(String, File)>);

impl Sink {
    fn create(flag: &str, path: Option<&Path>) -> Result<Sink, Stop> {
        let Some(path) = path else { return Ok(Sink(None)) };
        let name = format!("{flag} {}", path.display());
        match File::create(path) {
            Ok(file) => Ok(Sink(Some((name, file)))),
            Err(error) => Err(format!("{name}: {error}").into()),
        }
    }

    fn write(self, render: impl FnOnce() -> String) -> Result<(), Stop> {
        match self.0 {
            None => Ok(()),
            Some((name, mut file)) => {
                file.write_all(render().as_bytes()).map_err(|error| unwritten(&name, &error))
            }
        }
    }
}
