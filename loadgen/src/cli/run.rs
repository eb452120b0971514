//! `loadgen run`: load for people.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{FAILED, OK, signals, units};
use crate::engine::{Engine, Plan, Threads};
use crate::order::{self, Expect, KeepAlive, Load, Loop, Order, Request};
use crate::output::result::SlotResult;
use crate::output::table;

/// Load a server and print what was measured.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to ask for: http://127.0.0.1:8080/path or http+unix://%2Ftmp%2Fx.sock/path
    #[arg(required = true)]
    urls: Vec<String>,
    /// Connections kept open
    #[arg(short, long, default_value_t = 50)]
    connections: u32,
    /// How long to load (500ms, 10s, 2m) [default: 10s unless --requests is given]
    #[arg(short, long, value_parser = units::seconds)]
    duration: Option<f64>,
    /// How many requests to send
    #[arg(short = 'n', long)]
    requests: Option<u64>,
    /// Threads
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// CPUs to run on, one pinned thread on each (0,2-3)
    #[arg(long, value_parser = units::cpus, conflicts_with = "threads")]
    cpus: Option<units::CpuList>,
    /// A header field, `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_parser = units::header)]
    headers: Vec<(String, String)>,
    /// Method
    #[arg(short, long, default_value = "GET")]
    method: String,
    /// Body of each request
    #[arg(short = 'D', long)]
    data: Option<String>,
    /// Longest wait for a connection and for an answer
    #[arg(long, default_value = "5s", value_parser = units::seconds)]
    timeout: f64,
    /// Requests per connection: always (no limit), never (one), or a number
    #[arg(long, default_value_t = KeepAlive::Always)]
    keepalive: KeepAlive,
    /// Allow targets that are not on this machine
    #[arg(long)]
    allow_remote: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> Result<u8, String> {
    let signals = signals::block().map_err(|error| format!("cannot block signals: {error}"))?;
    let order = order(args);
    order::check(&order)?;
    let threads = match &args.cpus {
        Some(cpus) => Threads::OnCpus(cpus.0.clone()),
        None => Threads::Anywhere(args.threads.into()),
    };
    let interrupt = Arc::new(AtomicBool::new(false));
    let mut engine = Engine::start(&threads, &interrupt).map_err(|error| error.to_string())?;
    signals::watch(signals, interrupt, engine.wakers()).map_err(|error| error.to_string())?;
    let plan = Plan::new(order.clone())?;
    let origins = plan.origins.clone();
    let measured = engine.run(plan).map_err(|error| error.to_string())?;
    let result = SlotResult::new(&order, &origins, &measured);
    if args.json {
        println!("{}", serde_json::to_string(&result).map_err(|error| error.to_string())?);
    } else {
        print!("{}", table::render(&result));
    }
    let failed = measured.recorder.failures.total() > 0 || measured.recorder.completed == 0;
    Ok(if failed { FAILED } else { OK })
}

fn order(args: &Args) -> Order {
    let request = |url: &String| Request {
        url: url.clone(),
        method: args.method.clone(),
        headers: args.headers.clone(),
        body: args.data.clone(),
        weight: 1.0,
        expect: Expect::default(),
    };
    let endless = args.duration.is_none() && args.requests.is_none();
    Order {
        id: String::new(),
        requests: args.urls.iter().map(request).collect(),
        load: Load {
            kind: Loop::Closed,
            connections: args.connections,
            keepalive: args.keepalive,
            timeout_s: args.timeout,
        },
        duration_s: if endless { Some(10.0) } else { args.duration },
        count: args.requests,
        allow_remote: args.allow_remote,
        seed: 0,
    }
}
