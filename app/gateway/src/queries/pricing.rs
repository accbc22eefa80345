//! Costs of tokens, at the configured prices.

use std::collections::HashMap;

use harness::messages::UsageMetadata;
use harness::models::Pricing;

/// Sum of costs. Prices in different currencies have no sum.
#[derive(Debug)]
pub(crate) struct CostTotal<P> {
    price_of: P,
    prices: HashMap<String, Option<Pricing>>,
    total: Option<(String, f64)>,
    currencies_differ: bool,
}

impl<P: Fn(&str) -> Option<Pricing>> CostTotal<P> {
    /// An empty sum; each model's price is looked up once.
    pub(crate) fn new(price_of: P) -> Self {
        Self {
            price_of,
            prices: HashMap::new(),
            total: None,
            currencies_differ: false,
        }
    }

    /// Adds a usage and returns its cost, if the model has a price.
    pub(crate) fn add(&mut self, model: &str, usage: &UsageMetadata) -> Option<f64> {
        if !self.prices.contains_key(model) {
            self.prices.insert(model.to_owned(), (self.price_of)(model));
        }
        let pricing = self.prices.get(model)?.as_ref()?;
        let cost = pricing.cost(usage);
        let (currency, so_far) = self
            .total
            .take()
            .unwrap_or_else(|| (pricing.currency.clone(), 0.0));
        self.currencies_differ |= currency != pricing.currency;
        self.total = Some((currency, so_far + cost));
        Some(cost)
    }

    /// Returns the currency and the sum, if all costs have the same currency.
    pub(crate) fn total(self) -> Option<(String, f64)> {
        self.total.filter(|_| !self.currencies_differ)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_within_one_currency() {
        let price = |currency: &str| Pricing {
            currency: currency.to_owned(),
            input: 1_000_000.0,
            cached_input: 0.0,
            output: 0.0,
        };
        let usage = UsageMetadata {
            input_tokens: 2,
            ..UsageMetadata::default()
        };
        let sum_of = |models: &[&str]| {
            let mut total = CostTotal::new(|model| (model != "free").then(|| price(model)));
            let costs: Vec<Option<f64>> = models
                .iter()
                .map(|model| total.add(model, &usage))
                .collect();
            (costs, total.total())
        };
        assert_eq!(
            sum_of(&["EUR", "free", "EUR"]),
            (
                vec![Some(2.0), None, Some(2.0)],
                Some(("EUR".to_owned(), 4.0))
            )
        );
        assert_eq!(sum_of(&["EUR", "USD"]), (vec![Some(2.0), Some(2.0)], None));
        assert_eq!(sum_of(&["free"]), (vec![None], None));
    }
}
