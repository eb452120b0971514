//! Answers reported whole, for who wants to look into them.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use crate::engine::{Plan, Traced};

#[derive(Debug, Serialize)]
pub struct TracedAnswer {
    /// It is of the login; else of the order's requests.
    login: bool,
    /// Which one, from 0.
    request: usize,
    /// 0 where there was no answer.
    status: u16,
    head: String,
    /// Base64, as it came.
    body: String,
    /// By name: what the user took from it.
    captured: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl TracedAnswer {
    pub fn new(plan: &Plan, traced: &Traced) -> TracedAnswer {
        let asked = plan.order.requests.len();
        let login = traced.request >= asked;
        TracedAnswer {
            login,
            request: if login { traced.request - asked } else { traced.request },
            status: traced.status,
            head: String::from_utf8_lossy(&traced.head).into_owned(),
            body: BASE64_STANDARD.encode(&traced.body),
            captured: traced
                .captured
                .iter()
                .map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).into_owned()))
                .collect(),
            failure: traced.failure.clone(),
        }
    }
}
