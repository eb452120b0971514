//! Values with units on the command line.

/// Reads `10s`, `500ms`, `2m`, `1h` or a bare number of seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
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
    if value.is_finite() && value >= 0.0 {
        Ok(value * scale)
    } else {
        Err(format!("{text:?} is not a time from 0"))
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
        cpus.extend(first..=last);
    }
    Ok(CpuList(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(seconds("10s"), Ok(10.0));
        assert_eq!(seconds("250ms"), Ok(0.25));
        assert_eq!(seconds("2m"), Ok(120.0));
        assert_eq!(seconds("1.5"), Ok(1.5));
        for bad in ["", "s", "-1s", "1d", "inf", "nan"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpus("0,2-3"), Ok(CpuList(vec![0, 2, 3])));
        for bad in ["", "a", "3-2", "1,", "0-99999"] {
            assert!(cpus(bad).is_err(), "{bad}");
        }
    }
}
