//! How late a server writes its answers.

use hdrhistogram::{CreationError, Histogram};
use serde_json::{Value, json};

use crate::queue::Due;

/// Above this, lateness is no longer told apart.
const LATEST_US: u64 = 60_000_000;

pub struct Lateness {
    us: Histogram<u64>,
    /// Answers that were written later than the allowance has it.
    too_late: u64,
}

impl Lateness {
    pub fn new() -> Result<Self, CreationError> {
        Ok(Self { us: histogram()?, too_late: 0 })
    }

    /// Counts an answer that is written now.
    pub fn count(&mut self, due: &Due, now_ns: u64) {
        self.us.saturating_record((now_ns - due.at_ns) / 1000);
        self.too_late += u64::from(now_ns > due.latest_ns);
    }

    /// What is said of it when the server ends.
    pub fn told(&self, requests: u64) -> Value {
        json!({"requests": requests, "too_late": self.too_late, "late_us": figures(&self.us)})
    }
}

pub fn histogram() -> Result<Histogram<u64>, CreationError> {
    Histogram::new_with_bounds(1, LATEST_US, 3)
}

pub fn figures(us: &Histogram<u64>) -> Value {
    json!({
        "p50": us.value_at_quantile(0.50),
        "p99": us.value_at_quantile(0.99),
        "max": us.max(),
    })
}
