//! Values with units on the command line.

use std::net::{IpAddr, Ipv4Addr};

use crate::order::bounds::{HIGHEST_RATE, LONGEST_SLOT_S};
use crate::order::{ConnectTo, Stage};

pub const DAY_S: u32 = 86_400;

/// Reads `10s`, `500ms`, `2m`, `1h` or a bare number of seconds, up to a limit in seconds.
pub fn seconds<const MOST_S: u32>(text: &str) -> Result<f64, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{unit:?} is not a unit of time; use us, ms, s, m or h")),
    };
    let value: f64 = number.parse().map_err(|_| format!("{text:?} is not a time like 10s"))?;
    if (0.0..=MOST_S.into()).contains(&(value * scale)) {
        Ok(value * scale)
    } else {
        Err(format!("{text:?} is not a time from 0 to {MOST_S} s"))
    }
}

/// Reads a time that something takes, so 0 is none.
pub fn length<const MOST_S: u32>(text: &str) -> Result<f64, String> {
    seconds::<MOST_S>(text).and_then(|value| match value {
        0.0 => Err(format!("{text:?} is not a time above 0")),
        value => Ok(value),
    })
}

/// Reads a number above 0, up to a limit.
pub fn above_0<const MOST: u32>(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= MOST.into() => Ok(value),
        _ => Err(format!("{text:?} is not a number above 0, up to {MOST}")),
    }
}

/// Reads `Name: value`.
pub fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| format!("{text:?} is not `Name: value`"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// CPUs by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

/// Reads `0,2-3`.
pub fn cpus(text: &str) -> Result<CpuList, String> {
    let wrong = || format!("{text:?} is not a list of CPUs like 0,2-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().map_err(|_| wrong())?;
        let last: usize = last.trim().parse().map_err(|_| wrong())?;
        if first > last || last > 4096 {
            return Err(wrong());
        }
        for cpu in first..=last {
            // Two threads on one CPU would keep each other from it.
            if cpus.contains(&cpu) {
                return Err(format!("{text:?} names CPU {cpu} twice"));
            }
            cpus.push(cpu);
        }
    }
    Ok(CpuList(cpus))
}

/// Local addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources(pub Vec<IpAddr>);

/// Reads an address, or a range of IPv4 addresses.
pub fn sources(text: &str) -> Result<Sources, String> {
    let wrong = || format!("{text:?} is not an address, or a range like 127.0.0.2-127.0.0.9");
    let Some((first, last)) = text.split_once('-') else {
        return Ok(Sources(vec![text.parse().map_err(|_| wrong())?]));
    };
    let first: Ipv4Addr = first.parse().map_err(|_| wrong())?;
    let last: Ipv4Addr = last.parse().map_err(|_| wrong())?;
    let (first, last) = (first.to_bits(), last.to_bits());
    if first > last || last - first >= MOST_SOURCES {
        return Err(wrong());
    }
    Ok(Sources((first..=last).map(|bits| Ipv4Addr::from_bits(bits).into()).collect()))
}

const MOST_SOURCES: u32 = 65_536;

/// Reads curl's `HOST1:PORT1:HOST2:PORT2`; IPv6 addresses are in brackets.
pub fn connect_to(text: &str) -> Result<ConnectTo, String> {
    let wrong = || format!("{text:?} is not HOST:PORT:TO_HOST:TO_PORT, like ::127.0.0.1:8080");
    let [host, port, to_host, to_port] = parts(text)[..] else { return Err(wrong()) };
    let rule = ConnectTo {
        host: name(host),
        port: self::port(port).ok_or_else(wrong)?,
        to_host: name(to_host),
        to_port: self::port(to_port).ok_or_else(wrong)?,
    };
    if rule.to_host.is_none() && rule.to_port.is_none() { Err(wrong()) } else { Ok(rule) }
}

/// Reads curl's `HOST:PORT:ADDRESS[,ADDRESS]`.
pub fn resolve(text: &str) -> Result<ConnectTo, String> {
    let wrong = || format!("{text:?} is not HOST:PORT:ADDRESS, like example.org:443:127.0.0.1");
    let [host, port, ..] = parts(text)[..] else { return Err(wrong()) };
    let addresses = text.get(host.len() + port.len() + 2..).ok_or_else(wrong)?;
    let address = |text: &str| name(text).filter(|name| name.parse::<IpAddr>().is_ok());
    let addresses: Option<Vec<String>> = addresses.split(',').map(address).collect();
    Ok(ConnectTo {
        host: name(host),
        port: self::port(port).ok_or_else(wrong)?,
        to_host: Some(addresses.ok_or_else(wrong)?.join(",")),
        to_port: None,
    })
}

/// What is between colons that are in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    text.split(|letter| {
        is_inside = match letter {
            '[' => true,
            ']' => false,
            _ => is_inside,
        };
        letter == ':' && !is_inside
    })
    .collect()
}

/// A host without brackets, if there is one.
fn name(text: &str) -> Option<String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    (!bare.is_empty()).then(|| bare.to_owned())
}

/// A port, or none where it may be any; None outside where it is neither.
fn port(text: &str) -> Option<Option<u16>> {
    if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
}

/// Reads `10s:500` or `1m:0-1000`.
pub fn stage(text: &str) -> Result<Stage, String> {
    let wrong = || format!("{text:?} is not LENGTH:RATE or LENGTH:FROM-TO, like 10s:500");
    let (length, rates) = text.split_once(':').ok_or_else(wrong)?;
    let (from, to) = match rates.split_once('-') {
        Some((from, to)) => (from, Some(to)),
        None => (rates, None),
    };
    let rate = |text: &str| match text.trim().parse() {
        Ok(rate) if (0.0..=HIGHEST_RATE.into()).contains(&rate) => Ok(rate),
        _ => Err(wrong()),
    };
    Ok(Stage {
        rate_per_s: rate(from)?,
        to_rate_per_s: to.map(rate).transpose()?,
        for_s: Some(self::length::<LONGEST_SLOT_S>(length)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let seconds = seconds::<3600>;
        assert_eq!(seconds("10s"), Ok(10.0));
        assert_eq!(seconds("250ms"), Ok(0.25));
        assert_eq!(seconds("2m"), Ok(120.0));
        assert_eq!(seconds("1.5"), Ok(1.5));
        for bad in ["", "s", "-1s", "1d", "inf", "nan", "3601", "1e9"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        assert_eq!((length::<9>("10ms"), length::<9>("0s").is_err()), (Ok(0.01), true));
        assert_eq!((above_0::<9>("0.5"), above_0::<9>("0").is_err()), (Ok(0.5), true));
        assert!(["-1", "inf", "nan", "10/s", "10"].iter().all(|bad| above_0::<9>(bad).is_err()));
    }

    #[test]
    fn stages_and_sources() {
        let ramp = stage("1m:0-1000").expect("a ramp");
        assert_eq!(
            (ramp.rate_per_s, ramp.to_rate_per_s, ramp.for_s),
            (0.0, Some(1000.0), Some(60.0))
        );
        for bad in ["10s", "10s:x", "0s:5", "10s:-5", "10s:1e9", "1e9:5"] {
            assert!(stage(bad).is_err(), "{bad}");
        }
        assert_eq!(sources("127.0.0.2-127.0.0.4").map(|list| list.0.len()), Ok(3));
        assert!(sources("127.0.0.9-127.0.0.2").is_err() && sources("host").is_err());
    }

    #[test]
    fn rules_of_where_to_connect() {
        let rule = |host: &str, port, to_host: &str, to_port| ConnectTo {
            host: name(host),
            port,
            to_host: name(to_host),
            to_port,
        };
        assert_eq!(
            connect_to("a.org:443:[::1]:8443"),
            Ok(rule("a.org", Some(443), "::1", Some(8443)))
        );
        assert_eq!(connect_to("::127.0.0.1:"), Ok(rule("", None, "127.0.0.1", None)));
        assert_eq!(resolve("a.org:80:127.0.0.1"), Ok(rule("a.org", Some(80), "127.0.0.1", None)));
        for six in ["a.org:80:[::1]", "a.org:80:::1"] {
            assert_eq!(resolve(six), Ok(rule("a.org", Some(80), "::1", None)), "{six}");
        }
        let two = resolve("a.org:80:127.0.0.1,[::1]").map(|rule| rule.to_host);
        assert_eq!(two, Ok(Some("127.0.0.1,::1".into())));
        assert_eq!(resolve("[::1]:80:::1").map(|rule| rule.host), Ok(Some("::1".into())));
        for bad in ["", "a", "a:b:c:d", ":::", "a:1:b", "a:1:b:99999", "a:1:b:2:c"] {
            assert!(connect_to(bad).is_err(), "{bad}");
        }
        for bad in ["", "a:80", "a:80:", "a:80:name", "a:x:127.0.0.1", "a:80:127.0.0.1,"] {
            assert!(resolve(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpus("0,2-3"), Ok(CpuList(vec![0, 2, 3])));
        assert!(cpus("0-2,1").is_err_and(|why| why.contains("CPU 1 twice")));
        for bad in ["", "a", "3-2", "1,", "0-99999"] {
            assert!(cpus(bad).is_err(), "{bad}");
        }
    }
}
