//! What came of the requests of each endpoint, where an order names any.

use std::ops::AddAssign;

use derive_more::AddAssign;

use super::histogram::Histogram;

#[derive(Debug, Clone, Default, AddAssign)]
pub struct Endpoint {
    /// Latencies of valid answers.
    pub answered: Histogram,
    pub failed: u64,
}

/// By the number of the endpoint. The last ones are missing as long as nothing was recorded of them.
#[derive(Debug, Clone, Default)]
pub struct Endpoints(Vec<Endpoint>);

impl Endpoints {
    #[inline]
    pub fn at(&mut self, number: usize) -> &mut Endpoint {
        if number >= self.0.len() {
            self.0.resize_with(number + 1, Endpoint::default);
        }
        &mut self.0[number]
    }

    pub fn get(&self, number: usize) -> Endpoint {
        self.0.get(number).cloned().unwrap_or_default()
    }
}

impl AddAssign for Endpoints {
    fn add_assign(&mut self, other: Self) {
        for (number, endpoint) in other.0.into_iter().enumerate() {
            *self.at(number) += endpoint;
        }
    }
}
