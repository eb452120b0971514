//! Where requests go: a URL taken apart, and the addresses behind its host.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::order::{ConnectTo, IpVersion};

const LOCALHOST: &str = "localhost";

/// An address that can be connected to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    Tcp(SocketAddr),
    /// With the user whose process has to listen there, if that was said.
    Unix(PathBuf, Option<u32>),
}

impl Address {
    /// Both are of IPv4, of IPv6, or sockets of Unix.
    pub fn is_of_kind(&self, other: &Address) -> bool {
        match (self, other) {
            (Address::Tcp(one), Address::Tcp(another)) => one.is_ipv4() == another.is_ipv4(),
            (Address::Unix(..), Address::Unix(..)) => true,
            _ => false,
        }
    }

    /// Whoever connects there meets this machine: no address in particular (0.0.0.0) is here as well.
    pub fn leads_here(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().is_unspecified() || self.is_local(),
            Address::Unix(..) => true,
        }
    }

    /// Nobody on another machine reaches what listens there.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Address::Unix(..) => true,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path, _) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A URL as the engine needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The host as the URL names it: the `Host` field's value.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// A user's value stands where the path should begin, which is a link then: `{{next}}`.
    pub begins_with_link: bool,
    /// Scheme and host, for messages and results.
    pub origin: String,
    /// Over TLS.
    pub secure: bool,
    socket: Option<Address>,
}

impl Target {
    pub fn parse(url: &str) -> Result<Target, String> {
        let printable = url.bytes().all(|b| b > b' ' && b != 0x7f);
        if !printable {
            return Err(format!("{url:?} has spaces or control characters; percent-encode them"));
        }
        let url = url.split('#').next().unwrap_or_default();
        // The case of a scheme says nothing (RFC 3986 section 3.1).
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http+unix" | "ws+unix" | "grpc+unix" => return unix(rest),
            "http" | "ws" | "grpc" => false,
            "https" | "wss" | "grpcs" => true,
            _ => {
                let message = "does not begin with http://, https://, ws://, wss://, grpc://, grpcs:// \
                               or http+unix://";
                return Err(format!("{url:?} {message}"));
            }
        };
        let (host, path, begins_with_link) = split_path(rest);
        if host.is_empty() {
            return Err("the host is missing; write http://127.0.0.1:8080/".into());
        }
        if !host.is_ascii() {
            let remedy = "write it with xn-- (Punycode)";
            return Err(format!(
                "the host {host:?} has letters that resolvers don't take; {remedy}"
            ));
        }
        if host.contains('@') {
            let remedy = "give an Authorization header";
            return Err(format!("a user name in the URL is not supported; {remedy}"));
        }
        Ok(Target {
            host: host.to_owned(),
            path,
            begins_with_link,
            origin: format!("{}://{host}", scheme.to_ascii_lowercase()),
            secure,
            socket: None,
        })
    }

    pub fn is_socket(&self) -> bool {
        self.socket.is_some()
    }

    /// The host without its port.
    pub fn host_name(&self) -> &str {
        host_name(&self.host)
    }

    fn port(&self) -> Result<u16, String> {
        match self.host.rsplit_once(':') {
            Some((_, port)) if has_port(&self.host) => {
                port.parse().map_err(|_| format!("{port:?} is not a port from 1 to 65535"))
            }
            _ if self.secure => Ok(443),
            _ => Ok(80),
        }
    }
}

/// Host and path; true where the path begins with a place for a link.
fn split_path(rest: &str) -> (&str, String, bool) {
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let at = rest[..at].find("{{").unwrap_or(at);
    let (host, path) = rest.split_at(at);
    let slash = if path.starts_with('/') { "" } else { "/" };
    (host, format!("{slash}{path}"), path.starts_with("{{"))
}

/// A host without its port and the brackets of IPv6.
pub fn host_name(host: &str) -> &str {
    let name = if has_port(host) { host.rsplit_once(':') } else { None };
    let name = name.map_or(host, |(name, _)| name);
    name.trim_start_matches('[').trim_end_matches(']')
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'))
}

/// Finds addresses, asking once for each host: what was addresses local is what is loaded.
#[derive(Debug, Default)]
pub struct Resolver {
    connect_to: Vec<ConnectTo>,
    ip_version: Option<IpVersion>,
    known: HashMap<(String, u16), Vec<Address>>,
}

impl Resolver {
    pub fn new(connect_to: &[ConnectTo], ip_version: Option<IpVersion>) -> Self {
        Resolver { connect_to: connect_to.to_vec(), ip_version, known: HashMap::new() }
    }

    /// All addresses of a target, at least one: connections take those of the first one's kind in
    /// turn, and the others where these fail.
    pub fn addresses(&mut self, target: &Target) -> Result<&[Address], String> {
        if let Some(socket) = &target.socket {
            let known = self.known.entry((target.origin.clone(), 0));
            return Ok(known.or_insert_with(|| vec![socket.clone()]));
        }
        let (host, port) = self.destination(target)?;
        match self.known.entry((host, port)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let addresses = addresses_of(&new.key().0, port, self.ip_version)?;
                Ok(new.insert(addresses))
            }
        }
    }

    /// The host and port that are connected to.
    fn destination(&self, target: &Target) -> Result<(String, u16), String> {
        let (host, port) = (target.host_name(), target.port()?);
        let is_for = |rule: &&ConnectTo| {
            rule.host.as_deref().is_none_or(|known| known.eq_ignore_ascii_case(host))
                && rule.port.is_none_or(|known| known == port)
        };
        Ok(match self.connect_to.iter().find(is_for) {
            None => (host.to_owned(), port),
            Some(rule) => (
                rule.to_host.clone().unwrap_or_else(|| host.to_owned()),
                rule.to_port.unwrap_or(port),
            ),
        })
    }
}

fn addresses_of(
    host: &str,
    port: u16,
    ip_version: Option<IpVersion>,
) -> Result<Vec<Address>, String> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    // A rule may have several addresses.
    for name in host.split(',') {
        let known = (name, port).to_socket_addrs();
        addresses.extend(known.map_err(|error| format!("cannot resolve {name:?}: {error}"))?);
        if name.eq_ignore_ascii_case(LOCALHOST) {
            // Both are (RFC 6761 section 6.3), also where the system knows one of them alone.
            let both = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
            addresses.extend(both.map(|ip| SocketAddr::new(ip, port)));
        }
    }
    let mut seen = HashSet::new();
    addresses.retain(|address| seen.insert(*address));
    let kind = match ip_version {
        None => "address",
        Some(IpVersion::V4) => {
            addresses.retain(SocketAddr::is_ipv4);
            "IPv4 address"
        }
        Some(IpVersion::V6) => {
            addresses.retain(SocketAddr::is_ipv6);
            "IPv6 address"
        }
    };
    if addresses.is_empty() {
        return Err(format!("{host:?} has no {kind}"));
    }
    let first_kind = addresses[0].is_ipv4();
    addresses.sort_by_key(|address| address.is_ipv4() != first_kind);
    Ok(addresses.into_iter().map(Address::Tcp).collect())
}

fn unix(rest: &str) -> Result<Target, String> {
    let (host, path, begins_with_link) = split_path(rest);
    let numbered = |(uid, socket)| Some((str::parse(uid).ok()?, socket));
    let (uid, socket) = host.split_once('@').and_then(numbered).unzip();
    let socket = percent_decode_str(socket.unwrap_or(host))
        .decode_utf8()
        .map_err(|_| format!("{host:?} is not percent-encoded UTF-8"))?;
    if !socket.starts_with('/') {
        return Err(format!(
            "the socket {socket:?} is not an absolute path; write http+unix://%2Ftmp%2Fx.sock/"
        ));
    }
    Ok(Target {
        host: "localhost".into(),
        path,
        begins_with_link,
        origin: format!("http+unix://{host}"),
        secure: false,
        socket: Some(Address::Unix(PathBuf::from(socket.into_owned()), uid)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> (Target, String) {
        let target = Target::parse(url).expect("good");
        let mut resolver = Resolver::default();
        let address = resolver.addresses(&target).expect("an address")[0].to_string();
        (target, address)
    }

    #[test]
    fn takes_urls_apart() {
        let (target, address) = parse("http://127.0.0.1:8080/a?b=c#d");
        assert_eq!((target.host.as_str(), address.as_str()), ("127.0.0.1:8080", "127.0.0.1:8080"));
        assert_eq!(target.path, "/a?b=c");
        let (target, address) = parse("http://127.0.0.1?x");
        assert_eq!((address.as_str(), target.path.as_str()), ("127.0.0.1:80", "/?x"));
        assert_eq!(parse("http://[::1]").1, "[::1]:80");
        let (target, _) = parse("HTTPS://[::1]/x");
        assert_eq!((target.secure, target.origin.as_str()), (true, "https://[::1]"));
        let (target, address) = parse("https://[::1]/x");
        assert_eq!((address.as_str(), target.secure), ("[::1]:443", true));
        assert_eq!((target.host_name(), target.origin.as_str()), ("::1", "https://[::1]"));
        assert_eq!(parse("https://localhost:8443").0.host_name(), "localhost");
        assert_eq!((host_name("a.org:81"), host_name("[::1]:81")), ("a.org", "::1"));
        assert_eq!(parse("http+unix://%2Ftmp%2Fa.sock/x").1, "unix:/tmp/a.sock");
        let socket = |url| Target::parse(url).expect("good").socket.expect("a socket");
        assert_eq!(socket("http+unix://7@%2Fa/x"), Address::Unix("/a".into(), Some(7)));
        assert_eq!(socket("http+unix://%2Fa@b/x"), Address::Unix("/a@b".into(), None));
    }

    #[test]
    fn knows_what_is_local() {
        let all_local = |url: &str| {
            let target = Target::parse(url).expect(url);
            let mut resolver = Resolver::default();
            resolver.addresses(&target).expect(url).iter().all(Address::leads_here)
        };
        for url in [
            "http://127.9.9.9/",
            "http://localhost/",
            "http://[::1]/",
            "http+unix://%2Fx",
            "http://0.0.0.0/",
            "http://[::]/",
        ] {
            assert!(all_local(url), "{url}");
        }
        for url in ["http://192.0.2.1/", "http://[2001:db8::1]/"] {
            assert!(!all_local(url), "{url}");
        }
    }

    #[test]
    fn connects_where_the_order_says() {
        let rule = |host: Option<&str>, port, to_host: Option<&str>, to_port| ConnectTo {
            host: host.map(Into::into),
            port,
            to_host: to_host.map(Into::into),
            to_port,
        };
        let rules = [
            rule(Some("A.example"), Some(80), Some("127.0.0.1"), Some(8080)),
            rule(Some("a.example"), None, Some("::1"), None),
            rule(None, Some(81), Some("127.0.0.2"), None),
        ];
        let mut resolver = Resolver::new(&rules, None);
        for (url, address) in [
            ("http://a.example/", "127.0.0.1:8080"),
            ("https://a.example/", "[::1]:443"),
            ("http://b.example:81/", "127.0.0.2:81"),
            ("http://127.0.0.3/", "127.0.0.3:80"),
        ] {
            let target = Target::parse(url).expect(url);
            assert_eq!(resolver.addresses(&target).expect(url)[0].to_string(), address, "{url}");
        }
        let six = &mut Resolver::new(&[], Some(IpVersion::V6));
        let refused = six.addresses(&Target::parse("http://127.0.0.1/").expect("a URL"));
        assert!(refused.is_err_and(|why| why.contains("no IPv6 address")));
    }

    #[test]
    fn says_what_is_wrong() {
        for bad in [
            "",
            "x",
            "http://",
            "ftp://127.0.0.1/",
            "http://exämple.org/",
            "http://a b/",
            "http+unix://x/y",
            "http://a@127.0.0.1/",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
        let port = Target::parse("http://127.0.0.1:99999/").expect("well formed");
        assert!(Resolver::default().addresses(&port).is_err());
    }
}
