//! What an order must keep beyond its types; every message names the field and the remedy.

use super::{Expect, Load, Order, Request};
use crate::check::Sha256Hex;
use crate::target::Target;

pub fn check(order: &Order) -> Result<(), String> {
    if order.requests.is_empty() {
        return Err("requests: is empty; give at least one request".into());
    }
    for (index, request) in order.requests.iter().enumerate() {
        check_request(request, order.allow_remote)
            .map_err(|message| format!("requests[{index}].{message}"))?;
    }
    check_load(&order.load).map_err(|message| format!("load.{message}"))?;
    match (order.duration_s, order.count) {
        (None, None) => Err("duration_s: give duration_s, count, or both".into()),
        (Some(seconds), _) if !(seconds > 0.0 && seconds <= 1e6) => {
            Err(format!("duration_s: {seconds} is not between 0 and 1000000"))
        }
        (_, Some(0)) => Err("count: 0 requests measure nothing; give at least 1".into()),
        _ => Ok(()),
    }
}

fn check_request(request: &Request, allow_remote: bool) -> Result<(), String> {
    let target = Target::parse(&request.url).map_err(|error| format!("url: {error}"))?;
    if !allow_remote && !target.is_local() {
        return Err(format!(
            "url: {} is not on this machine; if you may load it, set \"allow_remote\": true \
             (--allow-remote)",
            target.address
        ));
    }
    if request.method.is_empty() || !request.method.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(format!("method: {:?} is not a method like GET or POST", request.method));
    }
    for (name, value) in &request.headers {
        let clean = |text: &str| !text.bytes().any(|b| b == b'\r' || b == b'\n' || b == 0);
        if name.is_empty() || name.contains(':') || !clean(name) || !clean(value) {
            return Err(format!("headers: {name:?}: {value:?} is not a header field"));
        }
    }
    if !(request.weight >= 0.0 && request.weight.is_finite()) {
        return Err(format!("weight: {} is not a number from 0", request.weight));
    }
    check_expect(&request.expect).map_err(|message| format!("expect.{message}"))
}

fn check_expect(expect: &Expect) -> Result<(), String> {
    if let Some(statuses) = &expect.status
        && (statuses.is_empty() || statuses.iter().any(|s| !(200..=999).contains(s)))
    {
        return Err(format!("status: {statuses:?} is not a list of statuses from 200 to 999"));
    }
    if let Some(sha256) = &expect.body_sha256 {
        sha256.parse::<Sha256Hex>().map_err(|error| format!("body_sha256: {error}"))?;
    }
    Ok(())
}

fn check_load(load: &Load) -> Result<(), String> {
    if load.connections == 0 {
        return Err("connections: 0 connections send nothing; give at least 1".into());
    }
    if !(load.timeout_s > 0.0 && load.timeout_s <= 86_400.0) {
        return Err(format!("timeout_s: {} is not between 0 and 86400", load.timeout_s));
    }
    Ok(())
}
