//! One row per window.

use std::fmt::Write;

use crate::engine::Window;

/// Seconds in `_s`, microseconds in `_us`; the last of each are 0 or 1.
const HEADER: &str = "at_s,length_s,sent,completed,failed,throughput_rps,latency_p50_us,\
                      latency_p99_us,latency_max_us,send_delay_p99_us,busiest_thread,client_limited,\
                      ramp_up,cpu_s,stalled";

pub fn render(windows: &[Window]) -> String {
    let mut text = format!("{HEADER}\n");
    for window in windows {
        let rate = window.completed as f64 / window.length_s.max(1e-9);
        let _ = writeln!(
            text,
            "{:.3},{:.6},{},{},{},{rate:.3},{},{},{},{},{:.4},{},{},{:.6},{}",
            window.at_s,
            window.length_s,
            window.sent,
            window.completed,
            window.failed,
            window.latency_p50_us,
            window.latency_p99_us,
            window.latency_max_us,
            window.send_delay_p99_us,
            window.busiest_thread,
            u8::from(window.client_limited),
            u8::from(window.ramp_up),
            window.cpu_s,
            u8::from(window.stalled),
        );
    }
    text
}
