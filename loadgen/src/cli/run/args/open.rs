//! Flags of open loops: when requests are due.

use std::num::NonZeroU32;
use std::path::PathBuf;

use crate::cli::units;
use crate::order::Stage;
use crate::order::bounds::{HIGHEST_RATE, MOST_SEND_DELAY_MS};

#[derive(Debug, clap::Args)]
pub struct OpenFlags {
    /// Requests due per second [default: a closed loop]
    #[arg(short, long, value_name = "PER_SECOND", value_parser = units::above_0::<HIGHEST_RATE>,
          allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Requests due per second on each connection, which wait for that one, as for a user who is
    /// slowed down [default: any free connection sends what is due]
    #[arg(long, value_name = "PER_SECOND", value_parser = units::above_0::<HIGHEST_RATE>,
          allow_negative_numbers = true,
          conflicts_with_all = ["count", "streams", "send_delay_budget", "max_backlog", "replay"])]
    pub rate_per_conn: Option<f64>,
    /// A stage: LENGTH:RATE or LENGTH:FROM-TO in requests per second (10s:500, 1m:0-1000);
    /// may be repeated [default: none]
    #[arg(long = "stage", value_name = "STAGE", value_parser = units::stage)]
    pub stages: Vec<Stage>,
    /// A file of times in seconds after the start, one a line [default: none]
    #[arg(long, value_name = "FILE")]
    pub times: Option<PathBuf>,
    /// New connections due per second, each with --requests-per-conn requests [default: none]
    #[arg(long, value_name = "PER_SECOND", value_parser = units::above_0::<HIGHEST_RATE>,
          allow_negative_numbers = true)]
    pub conn_rate: Option<f64>,
    /// Requests on each connection of --conn-rate, one after the other [default: 1]
    #[arg(long, value_name = "COUNT", requires = "conn_rate")]
    pub requests_per_conn: Option<NonZeroU32>,
    /// Exponential gaps between due times instead of even ones [default: even]
    #[arg(long, requires = "rates")]
    pub poisson: bool,
    /// So many are due at once, and as much less often: --rate 100 --burst 50 is 50 requests, twice a
    /// second [default: 1]
    #[arg(long, value_name = "COUNT", requires = "rates")]
    pub burst: Option<NonZeroU32>,
    /// Send requests up to so much later, and several at a wake-up, which costs less: 50us, 200us,
    /// 1ms, at most 10ms; responses are then timed by when the kernel got them [default: 0, exact]
    #[arg(long, value_name = "TIME", requires = "open",
          value_parser = send_delay)]
    pub send_delay_budget: Option<f64>,
    /// Due requests that may wait for a free connection; more are dropped and counted
    /// [default: 100000 requests]
    #[arg(long, value_name = "COUNT", requires = "open",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_backlog: Option<u32>,
}

fn send_delay(text: &str) -> Result<f64, String> {
    match units::seconds::<1>(text)? {
        long if long * 1e3 > MOST_SEND_DELAY_MS.into() => {
            Err(format!("is longer than {MOST_SEND_DELAY_MS} ms"))
        }
        delay => Ok(delay),
    }
}
