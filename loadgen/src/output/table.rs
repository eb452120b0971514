//! The result for people.

use std::fmt::Write;

use super::result::{SlotResult, Times};

/// The final table.
pub fn render(result: &SlotResult) -> String {
    let mut text = String::new();
    let requests = &result.requests;
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<14} {value}");
    };
    line("target", result.target.clone());
    line("rate", format!("{:.1} requests/s, completed and valid", result.rate_rps));
    line(
        "requests",
        format!(
            "{} sent, {} completed, {} unanswered at the end",
            requests.sent, requests.completed, requests.unanswered
        ),
    );
    line("measured", format!("{:.3} s, ended by {}", result.measured_s, result.ended_by));
    line("service time", times(&result.service_time_us));
    line("connect time", times(&result.connect_time_us));
    let failed: Vec<String> = result
        .failures
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    if !failed.is_empty() {
        line("failures", failed.join(", "));
        for sample in &result.failure_samples {
            line("", sample.clone());
        }
    }
    line(
        "client",
        format!(
            "{} thread(s), {:.0} % busy, {:.2} us CPU per request",
            result.client.threads,
            result.client.busy * 100.0,
            (result.client.cpu_user_s + result.client.cpu_sys_s) * 1e6
                / requests.sent.max(1) as f64
        ),
    );
    text
}

fn times(times: &Times) -> String {
    format!(
        "p50 {} p90 {} p99 {} p99.9 {} max {} us",
        times.p50, times.p90, times.p99, times.p99_9, times.max
    )
}
