//! What the machine must allow for an order, looked at before it runs.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::plan::Plan;
use super::sources;
use crate::target::Address;

/// Files open besides connections: standard streams, one epoll instance and waker per thread.
const OTHER_FILES: u64 = 64;

/// Raises the limit on open files as far as needed and allowed; says what to raise otherwise.
pub fn check(plan: &Plan) -> Result<(), String> {
    let load = &plan.order.load;
    let slow = load.slow_readers.map_or(0, |slow| slow.connections);
    let per_target = u64::from(load.connections) + u64::from(slow);
    let idle = u64::from(load.idle_connections);
    check_files(per_target * plan.targets.len() as u64 + idle + OTHER_FILES)?;
    sources::check(&load.source_addresses, &plan.targets)?;
    let sources = plan.sources.len().max(1) as u64;
    if plan.targets.iter().any(|address| matches!(address, Address::Tcp(_))) {
        check_ports(per_target + idle, sources)?;
    }
    Ok(())
}

fn check_files(needed: u64) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let soft = Rlimit { current: Some(needed), maximum: limit.maximum };
    let both = Rlimit { current: Some(needed), maximum: Some(needed) };
    let within = limit.maximum.is_none_or(|maximum| maximum >= needed);
    // Only a privileged process may raise the second limit.
    let raised = setrlimit(Resource::Nofile, if within { soft } else { both });
    raised.map_err(|_| {
        let maximum = limit.maximum.unwrap_or(needed);
        format!(
            "{needed} open files are needed, but only {maximum} are allowed: raise the limit \
             (`ulimit -Hn {needed}` as root, or LimitNOFILE), or ask for fewer connections"
        )
    })
}

/// Each connection between the same two addresses needs a local port of its own.
fn check_ports(connections: u64, sources: u64) -> Result<(), String> {
    let ports = local_ports().unwrap_or(u64::MAX);
    if connections <= ports.saturating_mul(sources) {
        return Ok(());
    }
    Err(format!(
        "{connections} connections to one address need as many local ports, but there are \
         {ports} for each source address: connect from more addresses (--source \
         127.0.0.2-127.0.0.9), or widen net.ipv4.ip_local_port_range"
    ))
}

fn local_ports() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut range = text.split_whitespace().map(str::parse::<u64>);
    let (first, last) = (range.next()?.ok()?, range.next()?.ok()?);
    last.checked_sub(first).map(|span| span + 1)
}
