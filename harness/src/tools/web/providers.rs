//! Builds each provider's adapter from the settings of its entry.

use std::sync::Arc;
use std::time::Duration;

use reqwest::ClientBuilder;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue, USER_AGENT};
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use super::brave::{self, Brave};
use super::browserless::{self, Browserless};
use super::crawl4ai::{self, Crawl4Ai};
use super::direct::Direct;
use super::duckduckgo::{self, DuckDuckGo, Safe};
use super::duckduckgo_images::{self, DuckDuckGoImages};
use super::exa::{self, Exa};
use super::factory::{BuiltTool, USER_AGENT_TEXT, WebToolFactory, provider_client};
use super::firecrawl::{self, Firecrawl};
use super::groundroute::{self, GroundRoute};
use super::image_search::{FilteredImageArgs, ImageSearch};
use super::infoquest::{self, InfoQuest};
use super::jina::{self, Jina};
use super::kinds::Role;
use super::remote::Remote;
use super::searxng::{self, SearXng};
use super::serper::{self, Serper};
use super::settings::{InvalidWebTool, Settings};
use super::tavily::{self, Tavily};
use super::web_search::Form;
use crate::tools::erase;

/// Number of results of a search without `max_results`.
const DEFAULT_RESULTS: usize = 5;

impl WebToolFactory {
    pub(super) fn brave(
        &self,
        s: Settings<'_>,
        max_results: usize,
    ) -> Result<Brave, InvalidWebTool> {
        let key = s.required_key("BRAVE_SEARCH_API_KEY")?;
        let token = HeaderName::from_static("x-subscription-token");
        let remote = keyed(
            s,
            self.remote(s, "Brave", brave::BASE, 30)?,
            token,
            "",
            Some(key),
        )?;
        let options = ["country", "search_lang", "safesearch"]
            .into_iter()
            .filter_map(|key| Some((key, s.text(key)?.to_owned())));
        let spelling = s.switch("spellcheck", true)?.to_string();
        let options = options.chain([("spellcheck", spelling)]).collect();
        Ok(Brave {
            remote,
            max_results: results(s, max_results)?,
            options,
        })
    }

    pub(super) fn browserless(&self, s: Settings<'_>) -> BuiltTool {
        let token = s.key(&["token", "api_key"], "BROWSERLESS_TOKEN");
        let remote = self
            .remote(s, "Browserless", browserless::BASE, 30)?
            .redacting(token.clone());
        let mut waits = Vec::new();
        if let Some(event) = s.text("wait_for_event") {
            waits.push(("waitForEvent", json!({ "event": event })));
        }
        if let Some(millis) = s.count("wait_for_timeout_ms", 0..=120_000)? {
            waits.push(("waitForTimeout", json!(millis)));
        }
        if let Some(selector) = s.text("wait_for_selector") {
            let limit = s.count("wait_for_selector_timeout_ms", 1..=120_000)?;
            let limit = limit.map(|millis| ("timeout".to_owned(), json!(millis)));
            waits.push((
                "waitForSelector",
                Value::Object(
                    [("selector".to_owned(), json!(selector))]
                        .into_iter()
                        .chain(limit)
                        .collect(),
                ),
            ));
        }
        self.page(
            s,
            Browserless {
                remote,
                token,
                waits,
            },
            true,
        )
    }

    pub(super) fn crawl4ai(&self, s: Settings<'_>) -> BuiltTool {
        let token = s.key(&["token", "api_key"], "CRAWL4AI_TOKEN");
        let remote = keyed(
            s,
            self.remote(s, "Crawl4AI", crawl4ai::BASE, 30)?,
            AUTHORIZATION,
            "Bearer ",
            token,
        )?;
        let filter = s.text("filter").unwrap_or("fit");
        if !crawl4ai::FILTERS.contains(&filter) {
            return Err(s.invalid("`filter` must be fit, raw, bm25 or llm"));
        }
        self.page(
            s,
            Crawl4Ai {
                remote,
                filter: filter.to_owned(),
            },
            true,
        )
    }

    pub(super) fn direct(&self, s: Settings<'_>) -> BuiltTool {
        let reader = Direct {
            client: self.guard(s)?,
            limit: s.seconds(&["timeout", "timeout_s"], 20)?,
        };
        self.page(s, reader, false)
    }

    pub(super) fn duckduckgo(&self, s: Settings<'_>) -> Result<DuckDuckGo, InvalidWebTool> {
        let remote = self
            .remote(s, "DuckDuckGo", duckduckgo::BASE, 20)?
            .with_header(USER_AGENT, HeaderValue::from_static(USER_AGENT_TEXT));
        Ok(DuckDuckGo {
            remote,
            max_results: results(s, duckduckgo::MAX_RESULTS)?,
            region: region(s),
            safe: safe(s)?,
        })
    }

    pub(super) fn duckduckgo_images(&self, s: Settings<'_>) -> BuiltTool {
        let remote = self
            .remote(s, "DuckDuckGo", duckduckgo_images::BASE, 20)?
            .with_header(USER_AGENT, HeaderValue::from_static(USER_AGENT_TEXT));
        let finder = DuckDuckGoImages {
            remote,
            max_results: results(s, duckduckgo_images::MAX_RESULTS)?,
            region: region(s),
            safe: safe(s)?,
        };
        Ok(erase(ImageSearch::<FilteredImageArgs>::new(
            Arc::new(finder),
            Form::Object,
        )))
    }

    pub(super) fn exa(&self, s: Settings<'_>) -> Result<Exa, InvalidWebTool> {
        let key = s.required_key("EXA_API_KEY")?;
        let remote = keyed(
            s,
            self.remote(s, "Exa", exa::BASE, 30)?,
            HeaderName::from_static("x-api-key"),
            "",
            Some(key),
        )?;
        let kind = s.text("search_type").unwrap_or("auto").to_owned();
        let max_chars = s
            .count("contents_max_characters", 1..=100_000)?
            .unwrap_or(1_000);
        Ok(Exa {
            remote,
            max_results: results(s, 100)?,
            kind,
            max_chars,
        })
    }

    pub(super) fn fastcrw(&self, s: Settings<'_>) -> Result<Firecrawl, InvalidWebTool> {
        let (base, _) = s.base_url(Some("CRW_API_URL"), firecrawl::FASTCRW_BASE);
        let key = s.key(&["api_key"], "CRW_API_KEY");
        let remote = self.remote_by(self.client.clone(), s, "fastCRW", base, 60)?;
        let remote = keyed(s, remote, AUTHORIZATION, "Bearer ", key)?;
        Ok(Firecrawl {
            remote,
            max_results: results(s, 100)?,
            version: "v1",
        })
    }

    pub(super) fn firecrawl(&self, s: Settings<'_>) -> Result<Firecrawl, InvalidWebTool> {
        let key = s.key(&["api_key"], "FIRECRAWL_API_KEY");
        // A self-hosted server may need no key.
        if key.is_none() && !s.base_url(None, "").1 {
            s.required_key("FIRECRAWL_API_KEY")?;
        }
        let remote = keyed(
            s,
            self.remote(s, "Firecrawl", firecrawl::BASE, 60)?,
            AUTHORIZATION,
            "Bearer ",
            key,
        )?;
        Ok(Firecrawl {
            remote,
            max_results: results(s, 100)?,
            version: "v2",
        })
    }

    pub(super) fn groundroute(&self, s: Settings<'_>) -> Result<GroundRoute, InvalidWebTool> {
        let key = s.required_key("GROUNDROUTE_API_KEY")?;
        let remote = keyed(
            s,
            self.remote(s, "GroundRoute", groundroute::BASE, 30)?,
            AUTHORIZATION,
            "Bearer ",
            Some(key),
        )?;
        Ok(GroundRoute {
            remote,
            max_results: results(s, groundroute::MAX_RESULTS)?,
        })
    }

    pub(super) fn infoquest(
        &self,
        s: Settings<'_>,
        role: Role,
    ) -> Result<InfoQuest, InvalidWebTool> {
        let key = s.required_key("INFOQUEST_API_KEY")?;
        let (base, keys): (_, &[(&str, &str)]) = match role {
            Role::Search => (
                infoquest::SEARCH_BASE,
                &[("search_time_range", "time_range")],
            ),
            Role::Images => (
                infoquest::SEARCH_BASE,
                &[("image_search_time_range", "time_range")],
            ),
            Role::Fetch => (
                infoquest::READER_BASE,
                &[
                    ("timeout", "timeout"),
                    ("fetch_time", "fetch_time"),
                    ("navigation_timeout", "navi_timeout"),
                ],
            ),
        };
        let mut options = Map::new();
        for (key, field) in keys {
            // A negative number selects the server's default.
            if let Some(number) = s.number(key)?.filter(|number| *number > 0.0) {
                options.insert((*field).to_owned(), json!(number as i64));
            }
        }
        let words: &[(&str, &str)] = if role == Role::Images {
            &[("image_size", "image_size")]
        } else {
            &[("search_site", "site")]
        };
        options.extend(
            words
                .iter()
                .filter_map(|(key, field)| Some(((*field).to_owned(), json!(s.text(key)?)))),
        );
        let base = s.base_url(None, base).0;
        let remote = Remote::new(
            "InfoQuest",
            self.client.clone(),
            &base,
            Duration::from_secs(60),
            self.retry_budget,
        );
        let remote = keyed(
            s,
            remote.map_err(|why| s.invalid(why))?,
            AUTHORIZATION,
            "Bearer ",
            Some(key),
        )?;
        Ok(InfoQuest {
            remote,
            max_results: results(s, 50)?,
            options,
        })
    }

    pub(super) fn jina(&self, s: Settings<'_>) -> BuiltTool {
        let limit = s.seconds(&["timeout"], 10)?;
        let proxy = s.text("proxy").map(reqwest::Proxy::all).transpose();
        let proxy = proxy.map_err(|_| s.invalid("`proxy` must be the URL of a proxy"))?;
        let trusts = s.switch("trust_env", true)?;
        let client = match (proxy, trusts) {
            (None, true) => Ok(self.client.clone()),
            (Some(proxy), _) => provider_client(|client| client.proxy(proxy)),
            (None, false) => provider_client(ClientBuilder::no_proxy),
        };
        let client = client.map_err(|error| s.invalid(error.to_string()))?;
        let (base, ours) = s.base_url(None, jina::BASE);
        let remote = self.remote_by(client, s, "Jina", base, limit.as_secs().max(1))?;
        let remote = keyed(
            s,
            remote,
            AUTHORIZATION,
            "Bearer ",
            s.key(&["api_key"], "JINA_API_KEY"),
        )?;
        self.page(
            s,
            Jina {
                remote,
                seconds: limit.as_secs().max(1),
            },
            ours,
        )
    }

    pub(super) fn searxng(&self, s: Settings<'_>) -> Result<SearXng, InvalidWebTool> {
        let language = s.text("language").unwrap_or("auto").to_owned();
        Ok(SearXng {
            remote: self.remote(s, "SearXNG", searxng::BASE, 30)?,
            max_results: results(s, 100)?,
            language,
        })
    }

    pub(super) fn serper(&self, s: Settings<'_>) -> Result<Serper, InvalidWebTool> {
        let key = s.required_key("SERPER_API_KEY")?;
        let remote = keyed(
            s,
            self.remote(s, "Serper", serper::BASE, 30)?,
            HeaderName::from_static("x-api-key"),
            "",
            Some(key),
        )?;
        Ok(Serper {
            remote,
            max_results: results(s, serper::MAX_RESULTS)?,
        })
    }

    pub(super) fn tavily(&self, s: Settings<'_>) -> Result<Tavily, InvalidWebTool> {
        let key = s.required_key("TAVILY_API_KEY")?;
        let remote = keyed(
            s,
            self.remote(s, "Tavily", tavily::BASE, 60)?,
            AUTHORIZATION,
            "Bearer ",
            Some(key),
        )?;
        Ok(Tavily {
            remote,
            max_results: results(s, 20)?,
        })
    }
}

fn keyed(
    s: Settings<'_>,
    remote: Remote,
    header: HeaderName,
    scheme: &str,
    key: Option<SecretString>,
) -> Result<Remote, InvalidWebTool> {
    remote
        .with_key(header, scheme, key)
        .map_err(|why| s.invalid(why))
}

/// Returns the configured number of results, capped at the provider's maximum.
fn results(s: Settings<'_>, max_results: usize) -> Result<usize, InvalidWebTool> {
    Ok(s.count("max_results", 1..=1_000)?
        .unwrap_or(DEFAULT_RESULTS)
        .min(max_results))
}

fn region(s: Settings<'_>) -> String {
    s.text("region").unwrap_or("wt-wt").to_owned()
}

fn safe(s: Settings<'_>) -> Result<Safe, InvalidWebTool> {
    match s.text("safesearch") {
        Some(text) => {
            Safe::parse(text).ok_or_else(|| s.invalid("`safesearch` must be on, moderate or off"))
        }
        // YAML can parse a bare `on` or `off` as a boolean.
        None if !s.has("safesearch") => Ok(Safe::Moderate),
        None => Ok(if s.switch("safesearch", true)? {
            Safe::On
        } else {
            Safe::Off
        }),
    }
}
