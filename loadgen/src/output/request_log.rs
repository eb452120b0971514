//! Requests as lines of JSON, one each.

use serde::Serialize;

use crate::engine::{Logged, Plan};

/// Times are microseconds after the load's beginning, ramp-up included.
#[derive(Debug, Serialize)]
struct Line<'a> {
    method: &'a str,
    url: &'a str,
    connection: usize,
    /// When it was due; null in a closed loop.
    scheduled_us: Option<f64>,
    /// Null where there was no connection to send it over.
    sent_us: Option<f64>,
    first_byte_us: Option<f64>,
    end_us: f64,
    status: Option<u16>,
    head_bytes: u64,
    body_bytes: u64,
    failure: Option<&'static str>,
}

/// A line for each, with its line feed.
pub fn render(plan: &Plan, ended: &[Logged]) -> String {
    let us = |ns: u64| ns as f64 / 1e3;
    let mut text = String::new();
    for logged in ended {
        let request = &plan.requests[logged.request];
        let line = Line {
            method: &request.method,
            url: &request.url,
            connection: logged.connection,
            scheduled_us: logged.due_ns.map(us),
            sent_us: logged.sent_ns.map(us),
            first_byte_us: logged.first_byte_ns.map(us),
            end_us: us(logged.end_ns),
            status: (logged.status > 0).then_some(logged.status),
            head_bytes: logged.head_bytes,
            body_bytes: logged.body_bytes,
            failure: logged.failure,
        };
        // Numbers and texts are always JSON.
        text.push_str(&serde_json::to_string(&line).unwrap_or_default());
        text.push('\n');
    }
    text
}
