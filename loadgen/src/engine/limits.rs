//! What the machine must allow for an order: open files, ports, addresses to connect from.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::order::Load;
use crate::target::Address;

/// Files open apart from connections: standard streams, an epoll instance and a timer per thread.
const OTHER_FILES: u64 = 64;
/// So many of an address find a free port at once: beyond half of the usual range of 28 232 ports
/// the kernel tries thousands for each connection, which takes it milliseconds.
const CONNECTIONS_PER_SOURCE: u64 = 8000;

/// Raises the limit on open files as far as needed and allowed; says what to raise otherwise.
/// `targets` has the addresses of each origin, `sources` what is connected from.
///
/// Gives whether connections of earlier slots to other servers may stay open next to this slot's.
pub fn check(load: &Load, targets: &[&[Address]], sources: &[IpAddr]) -> Result<bool, String> {
    let per_target = connections(load) - u64::from(load.idle_connections);
    let all = per_target * targets.len() as u64 + u64::from(load.idle_connections);
    let room = check_files(all + OTHER_FILES)?;
    check_sources(&load.source_addresses, targets)?;
    if targets.iter().any(|addresses| matches!(addresses[0], Address::Tcp(_))) {
        check_ports(connections(load), sources.len().max(1) as u64)?;
    }
    Ok(room)
}

/// The addresses to connect from in turn: those given or, where one is not enough for a load on
/// the IPv4 loopback network, as many of that network. None leaves the choice to the kernel.
pub fn sources<'a>(load: &Load, targets: impl Iterator<Item = &'a Address>) -> Vec<IpAddr> {
    let needed = connections(load).div_ceil(CONNECTIONS_PER_SOURCE) as u32;
    if !load.source_addresses.is_empty() || needed < 2 || !targets.into_iter().all(is_loopback) {
        return load.source_addresses.clone();
    }
    let first = u32::from(Ipv4Addr::LOCALHOST);
    (0..needed).map(|nth| Ipv4Addr::from(first.saturating_add(nth)).into()).collect()
}

/// To the first target, which has them all.
fn connections(load: &Load) -> u64 {
    let slow = load.slow_readers.map_or(0, |slow| slow.connections);
    [load.connections, slow, load.idle_connections].into_iter().map(u64::from).sum()
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
    let ports = local_ports().map_or(u64::MAX, |ports| ports.count() as u64);
    if connections <= ports.saturating_mul(sources) {
        return Ok(());
    }
    Err(format!(
        "{connections} connections to one address need as many local ports, but there are \
         {ports} for each source address: connect from more addresses (--source \
         127.0.0.2-127.0.0.9), or widen net.ipv4.ip_local_port_range"
    ))
}

/// The ports that the kernel chooses from.
pub fn local_ports() -> Option<RangeInclusive<u16>> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut range = text.split_whitespace().map(str::parse);
    Some(range.next()?.ok()?..=range.next()?.ok()?)
}

/// What a UDP socket may hold that isn't read yet.
pub fn udp_bytes() -> Option<usize> {
    fs::read_to_string("/proc/sys/net/core/rmem_max").ok()?.trim().parse().ok()
}

/// Refuses given addresses from which a target can't be reached.
fn check_sources(given: &[IpAddr], targets: &[&[Address]]) -> Result<(), String> {
    for source in given {
        for target in targets {
            if !target.iter().any(|address| suits(source, address)) {
                return Err(format!(
                    "--source {source}: {} can't be reached from it; give addresses of the same \
                     kind, or leave --source out",
                    target[0]
                ));
            }
        }
        TcpListener::bind((*source, 0)).map_err(|error| {
            format!("--source {source}: {error}; give addresses of this machine")
        })?;
    }
    Ok(())
}

/// The target can be reached from there.
pub fn suits(source: &IpAddr, target: &Address) -> bool {
    matches!(target, Address::Tcp(address) if address.is_ipv4() == source.is_ipv4())
}

fn is_loopback(target: &Address) -> bool {
    matches!(target, Address::Tcp(address) if address.is_ipv4() && address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(connections: u32, target: &str, given: &[IpAddr]) -> Vec<IpAddr> {
        let load = serde_json::json!({
            "loop": "closed", "connections": connections, "source_addresses": given,
        });
        let load = serde_json::from_value(load).expect("a load");
        sources(&load, [Address::Tcp(target.parse().expect("an address"))].iter())
    }

    #[test]
    fn many_connections_to_loopback_are_spread() {
        let wanted = ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().expect("an IP"));
        assert_eq!(spread(20_000, "127.0.0.1:80", &[]), wanted);
        assert_eq!(spread(20_000, "127.0.0.1:80", &wanted[..1]), wanted[..1]);
        for (connections, target) in [(8000, "127.0.0.1:80"), (9000, "10.0.0.1:80")] {
            assert!(spread(connections, target, &[]).is_empty());
        }
        assert!(spread(9000, "[::1]:80", &[]).is_empty());
    }

    #[test]
    fn addresses_that_reach_nothing_are_refused() {
        let target = [Address::Tcp("127.0.0.1:80".parse().expect("an address"))];
        let unix = [Address::Unix("/x".into(), None)];
        let said =
            |ip: &str, target: &[Address]| check_sources(&[ip.parse().expect("an IP")], &[target]);
        assert_eq!(said("127.0.0.9", &target), Ok(()));
        assert!(said("::1", &target).is_err_and(|why| why.contains("can't be reached")));
        assert!(said("127.0.0.9", &unix).is_err());
        // RFC 5737: an address for documentation, which no machine has.
        assert!(said("192.0.2.1", &target).is_err_and(|why| why.contains("of this machine")));
    }
}
