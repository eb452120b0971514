//! Metrics as text for Prometheus, of the load so far (exposition format 0.0.4).

use std::fmt::{self, Write};

use crate::engine::{Plan, Progress, Window};
use crate::record::{Counts, Histogram};

/// Upper bounds of the latency's buckets, in seconds.
const BOUNDS_S: [f64; 17] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 60.0,
];

/// What is known of a load while it runs.
#[derive(Debug)]
pub struct Metrics {
    target: String,
    is_running: bool,
    counts: Counts,
    /// Requests by latency, each in the first bucket that it fits into.
    buckets: [u64; BOUNDS_S.len()],
    latencies: u64,
    latency_s: f64,
    client_cpu_s: f64,
    saturated_windows: u64,
    window: Option<Window>,
}

impl Metrics {
    /// Before the load.
    pub fn new(plan: &Plan) -> Self {
        Metrics {
            target: plan.targets.join(", "),
            is_running: true,
            counts: Counts::default(),
            buckets: [0; BOUNDS_S.len()],
            latencies: 0,
            latency_s: 0.0,
            client_cpu_s: 0.0,
            saturated_windows: 0,
            window: None,
        }
    }

    /// A window is over.
    pub fn add(&mut self, progress: &Progress) {
        self.counts = progress.so_far.clone();
        self.add_latencies(progress.latency);
        self.client_cpu_s += progress.window.cpu_s;
        self.saturated_windows += u64::from(progress.window.client_limited);
        self.window = Some(progress.window.clone());
    }

    /// The load is over; these are all its counts.
    pub fn end(&mut self, counts: &Counts) {
        self.counts = counts.clone();
        self.is_running = false;
    }

    fn add_latencies(&mut self, latencies: &Histogram) {
        for (us, count) in latencies.values_us() {
            let seconds = us as f64 / 1e6;
            if let Some(fitting) = BOUNDS_S.iter().position(|bound| seconds <= *bound) {
                self.buckets[fitting] += count;
            }
        }
        self.latencies += latencies.count();
        self.latency_s += latencies.mean_us() / 1e6 * latencies.count() as f64;
    }

    pub fn render(&self) -> String {
        let mut text = Exposition(String::new());
        text.metric("info", "gauge", "The load generator and what it loads.");
        text.labelled(
            "info",
            &[("version", env!("CARGO_PKG_VERSION")), ("target", &self.target)],
            1.0,
        );
        text.one("running", "gauge", "1 while the load runs.", f64::from(self.is_running));
        self.render_counts(&mut text);
        self.render_latency(&mut text);
        self.render_window(&mut text);
        let does = "CPU time of the load generator's threads.";
        text.one("client_cpu_seconds_total", "counter", does, self.client_cpu_s);
        let does = "Windows in which the load generator was saturated.";
        text.one("saturated_windows_total", "counter", does, self.saturated_windows as f64);
        text.0
    }

    fn render_counts(&self, text: &mut Exposition) {
        let Counts { requests, seen, .. } = &self.counts;
        text.one("requests_total", "counter", "Requests sent.", requests.sent as f64);
        let does = "Responses with the expected status and body.";
        text.one("valid_responses_total", "counter", does, requests.completed as f64);
        text.metric("responses_total", "counter", "Responses by status.");
        for (status, count) in seen.by_status.iter() {
            text.labelled("responses_total", &[("status", &status.to_string())], *count as f64);
        }
        text.metric("failures_total", "counter", "Failures by what went wrong first.");
        for (failure, count) in seen.failures.iter() {
            text.labelled("failures_total", &[("kind", failure.name())], count as f64);
        }
        text.metric("received_bytes_total", "counter", "Bytes of responses.");
        for (of, count) in [("head", seen.bytes.head), ("body", seen.bytes.body)] {
            text.labelled("received_bytes_total", &[("part", of)], count as f64);
        }
        let does = "Connections opened.";
        text.one("connections_total", "counter", does, seen.connections.opened as f64);
    }

    fn render_latency(&self, text: &mut Exposition) {
        let does = "From when a request was scheduled (closed loop: sent) to the end of its \
                    response.";
        text.metric("latency_seconds", "histogram", does);
        let mut up_to = 0;
        for (bound, count) in BOUNDS_S.iter().zip(self.buckets) {
            up_to += count;
            text.labelled("latency_seconds_bucket", &[("le", &bound.to_string())], up_to as f64);
        }
        text.labelled("latency_seconds_bucket", &[("le", "+Inf")], self.latencies as f64);
        text.labelled("latency_seconds_sum", &[], self.latency_s);
        text.labelled("latency_seconds_count", &[], self.latencies as f64);
    }

    fn render_window(&self, text: &mut Exposition) {
        let Some(window) = &self.window else { return };
        let throughput = window.completed as f64 / window.length_s.max(1e-9);
        let does = "Valid responses per second in the last window.";
        text.one("window_throughput", "gauge", does, throughput);
        text.metric("window_latency_seconds", "gauge", "Latency in the last window.");
        for (quantile, us) in [
            ("0.5", window.latency_p50_us),
            ("0.99", window.latency_p99_us),
            ("1", window.latency_max_us),
        ] {
            text.labelled("window_latency_seconds", &[("quantile", quantile)], us / 1e6);
        }
        let does = "How late requests were sent in the last window, p99.";
        text.one("window_send_delay_seconds", "gauge", does, window.send_delay_p99_us / 1e6);
        let does = "Share of the last window that the busiest thread ran or waited for a CPU.";
        text.one("window_busiest_thread", "gauge", does, window.busiest_thread);
    }
}

/// Lines of the format, whose names begin alike.
struct Exposition(String);

impl Exposition {
    fn metric(&mut self, name: &str, kind: &str, does: &str) {
        self.line(format_args!("# HELP loadgen_{name} {does}"));
        self.line(format_args!("# TYPE loadgen_{name} {kind}"));
    }

    fn labelled(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let shown = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
        let labels: Vec<String> = labels.iter().map(shown).collect();
        match labels.is_empty() {
            true => self.line(format_args!("loadgen_{name} {value}")),
            false => self.line(format_args!("loadgen_{name}{{{}}} {value}", labels.join(","))),
        }
    }

    fn one(&mut self, name: &str, kind: &str, does: &str, value: f64) {
        self.metric(name, kind, does);
        self.labelled(name, &[], value);
    }

    fn line(&mut self, line: fmt::Arguments) {
        // Writing to memory does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}

/// As the format has it in values of labels.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_hold_all() {
        let order = serde_json::json!({
            "requests": [{"url": "http://127.0.0.1:1/"}], "duration_s": 1.0,
            "load": {"loop": "closed", "connections": 1},
        });
        let plan = Plan::new(serde_json::from_value(order).expect("an order")).expect("a plan");
        let mut metrics = Metrics::new(&plan);
        let mut latencies = Histogram::default();
        for ms in [0.05, 0.1, 3.0, 70_000.0] {
            latencies.record((ms * 1e6) as u64);
        }
        metrics.add_latencies(&latencies);
        let text = metrics.render();
        for line in [
            "loadgen_latency_seconds_bucket{le=\"0.0001\"} 2\n",
            "loadgen_latency_seconds_bucket{le=\"0.0025\"} 2\n",
            "loadgen_latency_seconds_bucket{le=\"0.005\"} 3\n",
            "loadgen_latency_seconds_bucket{le=\"60\"} 3\n",
            "loadgen_latency_seconds_bucket{le=\"+Inf\"} 4\n",
            "loadgen_latency_seconds_count 4\n",
            "loadgen_info{version=\"0.1.0\",target=\"http://127.0.0.1:1\"} 1\n",
            "loadgen_failures_total{kind=\"timeout\"} 0\n",
            "loadgen_running 1\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert_eq!(escaped("a\\b\"c\n"), "a\\\\b\\\"c\\n");
    }
}
