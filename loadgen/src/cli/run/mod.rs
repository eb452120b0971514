//! `loadgen run`: load for people.

mod args;
mod files;
mod flags_to_order;
mod once;
mod replay;
mod watch;

use std::slice;
use std::sync::Arc;

pub use args::{Args, explain};

use super::exit::{CROSSED, FAILED, OK, Stop, notify, print};
use super::{signals, verdict};
use crate::calls::Calls;
use crate::engine::{EndedBy, Measured, Plan};
use crate::order::validate::validate;
use crate::output::live::LiveView;
use crate::output::result::SlotResult;
use crate::output::{csv, hdr, table, words};
use files::{MetricsFile, RequestLogFile, Sink};
use watch::Watch;

pub fn main(args: &Args) -> Result<u8, Stop> {
    args.check()?;
    let (mut order, notes) = flags_to_order::build(args)?;
    validate(&order)?;
    notes.iter().for_each(|note| notify(note));
    let calls = Calls::prepare(&mut order, args.requests.once)?;
    let mut plan = Plan::new(order)?;
    plan.leaves_streams = true;
    plan.log_every = args.output.log_every();
    let plan = Arc::new(plan);
    if args.requests.once {
        let (text, is_valid) = once::show(&plan, &calls)?;
        print(&text)?;
        return Ok(if is_valid { OK } else { FAILED });
    }
    let csv = Sink::create("--csv", args.output.csv.as_deref())?;
    let hdr = Sink::create("--hdr", args.output.hdr.as_deref())?;
    let metrics = args.output.prometheus.as_deref();
    let metrics = metrics.map(|path| MetricsFile::create(path, &plan)).transpose()?;
    let log = args.output.log_requests.as_deref();
    let log = log.map(|path| RequestLogFile::create(path, &plan)).transpose()?;
    let live = LiveView::new(args.output.quiet);
    let stop_if = &args.checks.stop_if;
    let mut watch = Watch { live, metrics, log, stop_if, crossed: None };
    let measured = measure(args, &plan, &mut watch)?;
    let result = SlotResult::new(&plan, &measured);
    let text = match args.output.json {
        true => serde_json::to_string(&result).map_err(|error| error.to_string())? + "\n",
        false => words::printable(&table::render(&result)),
    };
    let printed = print(&text);
    csv.write(|| csv::render(&measured.sum.windows))?;
    hdr.write(|| hdr::render(&measured.latency))?;
    watch.metrics.map_or(Ok(()), |file| file.end(&measured))?;
    watch.log.map_or(Ok(()), RequestLogFile::end)?;
    printed?;
    if let Some(crossed) = watch.crossed.filter(|_| measured.ended_by == EndedBy::Limit) {
        notify(&format!("stopped after {:.1} s: {crossed}", result.whole.length_s));
        return Ok(CROSSED);
    }
    Ok(verdict::of(&result, &args.checks.fail_if, slice::from_ref(&result)))
}

fn measure(args: &Args, plan: &Arc<Plan>, watch: &mut Watch) -> Result<Measured, String> {
    let (mut engine, _) =
        signals::engine(args.load.cpus.as_ref(), args.load.threads, &Arc::default())
            .map_err(|error| error.to_string())?;
    let measured = engine.run(plan, watch).map_err(|error| error.to_string());
    watch.live.clear();
    measured
}
