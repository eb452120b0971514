//! Flags of what is right, and how the client watches itself.

use super::goodput::GoodputLimit;
use crate::cli::threshold::{StopLimit, Threshold};
use crate::cli::units;
use crate::order::Sha256Hex;
use crate::order::bounds::{LONGEST_WINDOW_S, SHORTEST_WINDOW_S};

#[derive(Debug, clap::Args)]
pub struct CheckFlags {
    /// A status that is right: 200; may be repeated [default: any 2xx]
    #[arg(long, value_name = "STATUS",
          value_parser = clap::value_parser!(u16).range(101..=999))]
    pub expect_status: Vec<u16>,
    /// Length of the right body in bytes [default: any]
    #[arg(long, value_name = "BYTES")]
    pub expect_bytes: Option<u64>,
    /// SHA-256 of the right body in hexadecimal; checked on the first response and one in 256
    /// [default: any]
    #[arg(long, value_name = "HEX")]
    pub expect_sha256: Option<Sha256Hex>,
    /// Exit with 5 when a figure crosses a limit: 'p99>50ms', 'throughput<1000', 'failures>0'; of
    /// p50 p90 p99 p99.9 max mean (latency), throughput (per second), failures, unanswered,
    /// retried (kept connections that the server closed under a request); of the last three also a
    /// share: 'failures>0.1%'; with --events also 'ttft p99>500ms', itl, tpot, tokens (per second),
    /// goodput; may be repeated [default: 'failures>0']
    #[arg(long, value_name = "LIMIT")]
    pub fail_if: Vec<Threshold>,
    /// Of streams: count what keeps a limit on the time to the first event (TTFT), the mean time per
    /// further one (TPOT) or the latency, per second: 'ttft<500ms', 'tpot<50ms', 'latency<5s'; may be
    /// repeated, and all have to hold [default: not counted]
    #[arg(long, value_name = "LIMIT")]
    pub goodput: Vec<GoodputLimit>,
    /// Stop, and exit with 5, once a limit is crossed: 'failures>5%' of all requests so far, or
    /// 'p99>2s' within one window after the ramp-up; figures of latency, throughput, failures, retried; may be
    /// repeated [default: go on]
    #[arg(long, value_name = "LIMIT")]
    pub stop_if: Vec<StopLimit>,
    /// Leave windows in which the client was saturated out of latency and throughput [default: keep]
    #[arg(long)]
    pub exclude_client_limited: bool,
    /// Length of the windows in which the client watches itself, and of the rows of --csv
    #[arg(long, value_name = "TIME", default_value = "1s",
          value_parser = window)]
    pub window: f64,
}

fn window(text: &str) -> Result<f64, String> {
    match units::seconds::<LONGEST_WINDOW_S>(text)? {
        short if short < SHORTEST_WINDOW_S => Err(format!("is shorter than {SHORTEST_WINDOW_S} s")),
        window => Ok(window),
    }
}
