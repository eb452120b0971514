//! Where connections come from.

use std::net::{IpAddr, Ipv4Addr};

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
}
