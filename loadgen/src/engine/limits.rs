//! What the machine must allow for an order, looked at before it runs.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::plan::Plan;
use super::sources;
use crate::target::Address;

/// Files open besides connections: standard streams, one epoll instance and waker per thread.
const OTHER_FILES: u64 = 64;

/// Raises the limit on open files as far as needed and allowed; says what to raise otherwise.
///
/// Gives whether connections of earlier slots to other servers may stay open beside this slot's.
pub fn check(plan: &Plan) -> Result<bool, String> {
    let load = &plan.order.load;
    let slow = load.slow_readers.map_or(0, |slow| slow.connections);
    let per_target = u64::from(load.connections) + u64::from(slow);
    let idle = u64::from(load.idle_connections);
    let room = check_files(per_target * plan.targets.len() as u64 + idle + OTHER_FILES)?;
    sources::check(&load.source_addresses, &plan.targets)?;
    let sources = plan.sources.len().max(1) as u64;
    if plan.targets.iter().any(|address| matches!(address, Address::Tcp(_))) {
        check_ports(per_target + idle, sources)?;
    }
    Ok(room)
}

fn check_files(needed: u64) -> Result<bool, String> {
    let wanted = needed + open_files();
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(true);
    }
    let within = limit.maximum.is_none_or(|maximum| maximum >= wanted);
    let maximum = if within { limit.maximum } else { Some(wanted) };
    // Only a privileged process may raise the second limit; others get by with all of it.
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
        .or_else(|_| setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }))
        .map_err(|error| format!("the limit on open files can't be raised: {error}"))?;
    match getrlimit(Resource::Nofile).current {
        Some(allowed) if allowed < needed => Err(format!(
            "{needed} open files are needed, but only {allowed} are allowed: raise the limit \
             (`ulimit -Hn {needed}` as root, or LimitNOFILE), or ask for fewer connections"
        )),
        allowed => Ok(allowed.is_none_or(|allowed| allowed >= wanted)),
    }
}

fn open_files() -> u64 {
    fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64)
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
