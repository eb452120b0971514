//! `loadgen relay`: a cable with delay and losses between two network interfaces.

use relay::{Cable, Relay};

use super::exit::{OK, Stop, print};
use crate::cli::units;
use crate::clock::seconds_to_ns;

/// Carry packets between two network interfaces, late or not at all: netem for kernels without it.
///
/// Prints "ready" when it has begun, and ends when an interface goes away. Takes CAP_NET_RAW; meant
/// for interfaces in network namespaces.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The interfaces at the cable's ends
    #[arg(num_args = 2, value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Delay of each packet, each way: 10ms
    #[arg(long, value_parser = units::seconds::<{ units::DAY_S }>, value_name = "TIME", default_value = "0")]
    delay: f64,
    /// Share of packets that get lost, each way, 0 to 1
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    loss: f64,
}

fn share(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| format!("{text:?} is not a number from 0 to 1"))
}

pub fn main(args: &Args) -> Result<u8, Stop> {
    let [first, second] = args.interfaces.as_slice() else {
        return Err("a cable has two ends: give two interfaces".into());
    };
    let cable = Cable { delay_ns: seconds_to_ns(args.delay), loss: args.loss };
    let relay = Relay::between(first, second, cable)
        .map_err(|error| format!("cannot relay between {first} and {second}: {error}"))?;
    print("ready\n")?;
    relay.run().map_err(|error| format!("the relay ended: {error}"))?;
    Ok(OK)
}
