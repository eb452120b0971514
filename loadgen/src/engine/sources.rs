//! Where connections come from.

use std::net::{IpAddr, Ipv4Addr, TcpListener};

use crate::order::Load;
use crate::target::Address;

/// So many of an address find a free port at once: beyond half of the usual range of 28 232 ports
/// the kernel tries thousands for each connection, which takes it milliseconds.
const CONNECTIONS_PER_SOURCE: u32 = 8000;

/// The addresses to connect from in turn: those given or, where one is not enough for a load on
/// the IPv4 loopback network, as many of that network. None leaves the choice to the kernel.
pub fn of(load: &Load, targets: &[Address]) -> Vec<IpAddr> {
    let slow = load.slow_readers.map_or(0, |slow| slow.connections);
    let connections = load.connections.saturating_add(slow).saturating_add(load.idle_connections);
    let needed = connections.div_ceil(CONNECTIONS_PER_SOURCE);
    if !load.source_addresses.is_empty() || needed < 2 || !targets.iter().all(is_loopback) {
        return load.source_addresses.clone();
    }
    let first = u32::from(Ipv4Addr::LOCALHOST);
    (0..needed).map(|nth| Ipv4Addr::from(first + nth).into()).collect()
}

/// Refuses given addresses from which a target can't be reached.
pub fn check(given: &[IpAddr], targets: &[Address]) -> Result<(), String> {
    for target in targets {
        if let Some(source) = given.iter().find(|source| !suits(source, target)) {
            return Err(format!(
                "--source {source}: {target} can't be reached from it; give addresses of the \
                 same kind, or leave --source out"
            ));
        }
    }
    for source in given {
        TcpListener::bind((*source, 0)).map_err(|error| {
            format!("--source {source}: {error}; give addresses of this machine")
        })?;
    }
    Ok(())
}

fn suits(source: &IpAddr, target: &Address) -> bool {
    matches!(target, Address::Tcp(address) if address.is_ipv4() == source.is_ipv4())
}

fn is_loopback(target: &Address) -> bool {
    matches!(target, Address::Tcp(address) if address.is_ipv4() && address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(connections: u32, target: &str, given: &[IpAddr]) -> Vec<IpAddr> {
        let load = serde_json::json!({
            "loop": "closed", "connections": connections, "source_addresses": given,
        });
        let load = serde_json::from_value(load).expect("a load");
        of(&load, &[Address::Tcp(target.parse().expect("an address"))])
    }

    #[test]
    fn many_connections_to_loopback_are_spread() {
        let spread = ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|ip| ip.parse().expect("an IP"));
        assert_eq!(sources(20_000, "127.0.0.1:80", &[]), spread);
        assert_eq!(sources(20_000, "127.0.0.1:80", &spread[..1]), spread[..1]);
        for (connections, target) in [(8000, "127.0.0.1:80"), (9000, "10.0.0.1:80")] {
            assert!(sources(connections, target, &[]).is_empty());
        }
        assert!(sources(9000, "[::1]:80", &[]).is_empty());
    }

    #[test]
    fn addresses_that_reach_nothing_are_refused() {
        let target = [Address::Tcp("127.0.0.1:80".parse().expect("an address"))];
        let said = |ip: &str, targets: &[Address]| check(&[ip.parse().expect("an IP")], targets);
        assert_eq!(said("127.0.0.9", &target), Ok(()));
        assert!(said("::1", &target).is_err_and(|why| why.contains("can't be reached")));
        assert!(said("127.0.0.9", &[Address::Unix("/x".into())]).is_err());
        // RFC 5737: an address for documentation, which no machine has.
        assert!(said("192.0.2.1", &target).is_err_and(|why| why.contains("of this machine")));
    }
}
