//! Where requests go: a URL taken apart.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// An address that can be connected to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A URL as the engine needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub address: Address,
    /// The host as the URL names it: the `Host` field's value.
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Scheme and host, for messages and results.
    pub origin: String,
    /// Over TLS.
    pub secure: bool,
}

impl Target {
    pub fn parse(url: &str) -> Result<Target, String> {
        let printable = url.bytes().all(|b| b > b' ' && b != 0x7f);
        if !printable {
            return Err(format!("{url:?} has spaces or control characters; percent-encode them"));
        }
        let url = url.split('#').next().unwrap_or_default();
        if let Some(rest) = url.strip_prefix("http+unix://") {
            return unix(rest);
        }
        let (secure, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => {
                let message = "does not begin with http://, https:// or http+unix://";
                return Err(format!("{url:?} {message}"));
            }
        };
        let (host, path) = split_path(rest);
        Ok(Target {
            address: Address::Tcp(resolve(host, if secure { 443 } else { 80 })?),
            host: host.to_owned(),
            path,
            origin: url[..url.len() - rest.len() + host.len()].to_owned(),
            secure,
        })
    }

    /// The host without its port.
    pub fn host_name(&self) -> &str {
        let name = if has_port(&self.host) { self.host.rsplit_once(':') } else { None };
        let name = name.map_or(self.host.as_str(), |(name, _)| name);
        name.trim_start_matches('[').trim_end_matches(']')
    }

    /// The target cannot be another machine.
    pub fn is_local(&self) -> bool {
        match &self.address {
            Address::Tcp(address) => match address.ip() {
                IpAddr::V6(ip) => ip.to_canonical().is_loopback(),
                IpAddr::V4(ip) => ip.is_loopback(),
            },
            Address::Unix(_) => true,
        }
    }
}

fn split_path(rest: &str) -> (&str, String) {
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(at);
    let slash = if path.starts_with('/') { "" } else { "/" };
    (host, format!("{slash}{path}"))
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'))
}

fn resolve(host: &str, default_port: u16) -> Result<SocketAddr, String> {
    if host.is_empty() {
        return Err("the host is missing; write http://127.0.0.1:8080/".into());
    }
    if host.contains('@') {
        return Err("a user name in the URL is not supported; give an Authorization header".into());
    }
    let with_port = if has_port(host) { host.to_owned() } else { format!("{host}:{default_port}") };
    let mut addresses =
        with_port.to_socket_addrs().map_err(|error| format!("cannot resolve {host:?}: {error}"))?;
    addresses.next().ok_or_else(|| format!("{host:?} has no address"))
}

fn unix(rest: &str) -> Result<Target, String> {
    let (host, path) = split_path(rest);
    let socket = percent_decode(host)?;
    if !socket.starts_with('/') {
        return Err(format!(
            "the socket {socket:?} is not an absolute path; write http+unix://%2Ftmp%2Fx.sock/"
        ));
    }
    Ok(Target {
        address: Address::Unix(PathBuf::from(&socket)),
        host: "localhost".into(),
        path,
        origin: format!("http+unix://{host}"),
        secure: false,
    })
}

fn percent_decode(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is not percent-encoded UTF-8");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = rest.get(..2).and_then(|d| std::str::from_utf8(d).ok()).ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_urls_apart() {
        let target = Target::parse("http://127.0.0.1:8080/a?b=c#d").expect("good");
        assert_eq!(target.address.to_string(), "127.0.0.1:8080");
        assert_eq!((target.host.as_str(), target.path.as_str()), ("127.0.0.1:8080", "/a?b=c"));
        let target = Target::parse("http://127.0.0.1?x").expect("good");
        assert_eq!(
            (target.address.to_string().as_str(), target.path.as_str()),
            ("127.0.0.1:80", "/?x")
        );
        let target = Target::parse("http://[::1]").expect("good");
        assert_eq!(target.address.to_string(), "[::1]:80");
        let target = Target::parse("https://[::1]/x").expect("good");
        assert_eq!((target.address.to_string().as_str(), target.secure), ("[::1]:443", true));
        assert_eq!((target.host_name(), target.origin.as_str()), ("::1", "https://[::1]"));
        let target = Target::parse("https://localhost:8443").expect("good");
        assert_eq!(target.host_name(), "localhost");
        let target = Target::parse("http+unix://%2Ftmp%2Fa.sock/x").expect("good");
        assert_eq!(target.address, Address::Unix("/tmp/a.sock".into()));
    }

    #[test]
    fn knows_what_is_local() {
        for url in ["http://127.9.9.9/", "http://localhost/", "http://[::1]/", "http+unix://%2Fx"] {
            assert!(Target::parse(url).expect(url).is_local(), "{url}");
        }
        for url in ["http://192.0.2.1/", "http://[2001:db8::1]/", "http://0.0.0.0/"] {
            assert!(!Target::parse(url).expect(url).is_local(), "{url}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for bad in ["", "x", "http://", "http://a b/", "http+unix://x/y", "http://127.0.0.1:99999/"]
        {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
    }
}
