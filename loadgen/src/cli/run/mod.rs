//! `loadgen run`: load for people.

mod args;
mod once;
mod order;
mod replay;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::slice;
use std::sync::Arc;

pub use args::{Args, explain};

use super::exit::{FAILED, OK, Stop, print, tell, unwritten};
use super::{signals, verdict};
use crate::engine::{Measured, Plan, Window};
use crate::output::live::LiveLine;
use crate::output::result::SlotResult;
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
        false => table::render(&result),
    };
    let printed = print(&text);
    csv.write(|| csv::render(&measured.sum.windows))?;
    hdr.write(|| hdr::render(&measured.response_time))?;
    printed?;
    Ok(verdict::of(&result, &args.checks.fail_on, slice::from_ref(&result)))
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
