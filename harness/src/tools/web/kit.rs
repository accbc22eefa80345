//! Makes the web tools that a configuration names.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Client, ClientBuilder};
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use super::brave::{self, Brave};
use super::browserless::{self, Browserless};
use super::crawl4ai::{self, Crawl4Ai};
use super::direct::Direct;
use super::duckduckgo::{self, DuckDuckGo, Safe};
use super::duckduckgo_images::{self, DuckDuckGoImages};
use super::exa::{self, Exa};
use super::firecrawl::{self, Firecrawl};
use super::groundroute::{self, GroundRoute};
use super::image_search::{FilteredImageArgs, ImageArgs, ImageSearch};
use super::infoquest::{self, InfoQuest};
use super::jina::{self, Jina};
use super::kinds::{self, Provider, Role};
use super::ports::{PageFinder, PageReader, PictureFinder};
use super::searxng::{self, SearXng};
use super::serper::{self, Serper};
use super::tavily::{self, Tavily};
use super::web_fetch::{Reach, WebFetch};
use super::web_search::{CountedSearchArgs, Form, SearchArgs, WebSearch};
use super::{Patience, Remote, Settings};
use crate::config::ToolConfig;
use crate::net::{Egress, GuardedClient, Lookup, Ports, SystemLookup};
use crate::tools::{DynTool, erase};

/// Environment variables by name.
pub type Variables = HashMap<String, String>;

type Made = Result<Arc<dyn DynTool>, BadTool>;

/// How long nobody waits longer for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// As whom pages and search engines see us.
const AGENT: &str = concat!(
    "Mozilla/5.0 (compatible; deerflow/",
    env!("CARGO_PKG_VERSION"),
    ")"
);
/// The longest page that a model reads, in characters, if nobody says.
const USUAL_CHARS: usize = 4_096;
/// How many results a search has if nobody says.
const USUAL_RESULTS: usize = 5;

/// An entry that cannot be made a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool `{tool}`: {why}")]
pub struct BadTool {
    /// The entry's name.
    pub tool: String,
    /// What is wrong with it.
    pub why: String,
}

/// What all web tools share.
#[derive(Debug, Clone)]
pub struct WebKit {
    client: Client,
    lookup: Arc<dyn Lookup>,
    patience: Patience,
    variables: Variables,
}

impl WebKit {
    /// The environment variables that stand in for keys and addresses which an entry does not have.
    pub const VARIABLES: &[&str] = &[
        "BRAVE_SEARCH_API_KEY",
        "BROWSERLESS_TOKEN",
        "CRAWL4AI_TOKEN",
        "CRW_API_KEY",
        "CRW_API_URL",
        "EXA_API_KEY",
        "FIRECRAWL_API_KEY",
        "GROUNDROUTE_API_KEY",
        "INFOQUEST_API_KEY",
        "JINA_API_KEY",
        "SERPER_API_KEY",
        "TAVILY_API_KEY",
    ];

    /// A kit with the resolver of the system.
    pub fn new(variables: Variables) -> reqwest::Result<Self> {
        Self::with(
            variables,
            Arc::new(SystemLookup::default()),
            Patience::default(),
        )
    }

    /// A kit with another resolver for the pages that models name, and another patience with providers.
    pub fn with(
        variables: Variables,
        lookup: Arc<dyn Lookup>,
        patience: Patience,
    ) -> reqwest::Result<Self> {
        Ok(Self {
            client: provider_client(|client| client)?,
            lookup,
            patience,
            variables,
        })
    }

    /// The tool of an entry; `None` if the entry names no web tool.
    pub fn tool(&self, entry: &ToolConfig) -> Option<Made> {
        let (provider, role) = kinds::parse(&entry.implementation)?;
        let settings = Settings::new(entry, &self.variables);
        let unresolved = entry
            .require_resolved()
            .map_err(|missing| settings.bad(missing.to_string()));
        Some(unresolved.and_then(|()| self.make(provider, role, settings)))
    }

    fn make(&self, provider: Provider, role: Role, s: Settings<'_>) -> Made {
        match (provider, role) {
            (Provider::Brave, Role::Search) => Ok(counted(self.brave(s, brave::MOST)?)),
            (Provider::Brave, Role::Images) => {
                Ok(pictures(self.brave(s, brave::MOST_PICTURES)?, Form::Object))
            }
            (Provider::Browserless, Role::Fetch) => self.browserless(s),
            (Provider::Crawl4Ai, Role::Fetch) => self.crawl4ai(s),
            (Provider::Direct, Role::Fetch) => self.direct(s),
            (Provider::DuckDuckGo, Role::Search) => Ok(counted(self.duckduckgo(s)?)),
            (Provider::DuckDuckGo, Role::Images) => self.duckduckgo_images(s),
            (Provider::Exa, Role::Search) => Ok(listed(self.exa(s)?)),
            (Provider::Exa, Role::Fetch) => self.page(s, self.exa(s)?, s.base_url(None, "").1),
            (Provider::FastCrw, Role::Search) => Ok(listed(self.fastcrw(s)?)),
            (Provider::FastCrw, Role::Fetch) => self.page(s, self.fastcrw(s)?, true),
            (Provider::Firecrawl, Role::Search) => Ok(listed(self.firecrawl(s)?)),
            (Provider::Firecrawl, Role::Fetch) => {
                self.page(s, self.firecrawl(s)?, s.base_url(None, "").1)
            }
            (Provider::GroundRoute, Role::Search) => Ok(erase(
                WebSearch::<CountedSearchArgs>::new(Arc::new(self.groundroute(s)?), Form::List),
            )),
            (Provider::GroundRoute, Role::Fetch) => {
                self.page(s, self.groundroute(s)?, s.base_url(None, "").1)
            }
            (Provider::InfoQuest, Role::Search) => Ok(listed(self.infoquest(s, role)?)),
            (Provider::InfoQuest, Role::Images) => {
                Ok(pictures(self.infoquest(s, role)?, Form::List))
            }
            (Provider::InfoQuest, Role::Fetch) => {
                self.page(s, self.infoquest(s, role)?, s.base_url(None, "").1)
            }
            (Provider::Jina, Role::Fetch) => self.jina(s),
            (Provider::SearXng, Role::Search) => Ok(listed(self.searxng(s)?)),
            (Provider::Serper, Role::Search) => Ok(counted(self.serper(s)?)),
            (Provider::Serper, Role::Images) => Ok(pictures(self.serper(s)?, Form::Object)),
            (Provider::Tavily, Role::Search) => Ok(listed(self.tavily(s)?)),
            (Provider::Tavily, Role::Fetch) => {
                self.page(s, self.tavily(s)?, s.base_url(None, "").1)
            }
            _ => Err(s.bad("this provider has no such tool")),
        }
    }

    /// A provider's server at its usual address or the configured one.
    fn remote(
        &self,
        s: Settings<'_>,
        name: &'static str,
        base: &str,
        seconds: u64,
    ) -> Result<Remote, BadTool> {
        self.remote_by(
            self.client.clone(),
            s,
            name,
            s.base_url(None, base).0,
            seconds,
        )
    }

    fn remote_by(
        &self,
        client: Client,
        s: Settings<'_>,
        name: &'static str,
        base: String,
        seconds: u64,
    ) -> Result<Remote, BadTool> {
        let limit = s.seconds(&["timeout", "timeout_s"], seconds)?;
        Remote::new(name, client, &base, limit, self.patience).map_err(|why| s.bad(why))
    }

    /// A reader of pages; `ours` says whether its server may stand in this machine's network.
    fn page(&self, s: Settings<'_>, reader: impl PageReader, ours: bool) -> Made {
        let guard = self.guard(s)?;
        let reach = if ours {
            Reach::Ours(guard)
        } else {
            Reach::Guarded(guard)
        };
        Ok(erase(WebFetch {
            reader: Arc::new(reader),
            reach,
            most_chars: most_chars(s)?,
        }))
    }

    /// Who judges the addresses that a model names.
    fn guard(&self, s: Settings<'_>) -> Result<GuardedClient, BadTool> {
        let egress = Egress {
            allow_private: s.switch("allow_private_addresses", false)?,
            hosts: s.texts("allowed_hosts")?,
            ports: Ports::Web,
        };
        let made = GuardedClient::new(egress, self.lookup.clone(), |client| {
            client.connect_timeout(CONNECT_LIMIT).user_agent(AGENT)
        });
        made.map_err(|error| s.bad(error.to_string()))
    }

    fn brave(&self, s: Settings<'_>, most: usize) -> Result<Brave, BadTool> {
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
            most: results(s, most)?,
            options,
        })
    }

    fn browserless(&self, s: Settings<'_>) -> Made {
        let token = s.key(&["token", "api_key"], "BROWSERLESS_TOKEN");
        let remote = self
            .remote(s, "Browserless", browserless::BASE, 30)?
            .hiding(token.clone());
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

    fn crawl4ai(&self, s: Settings<'_>) -> Made {
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
            return Err(s.bad("`filter` must be fit, raw, bm25 or llm"));
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

    fn direct(&self, s: Settings<'_>) -> Made {
        let reader = Direct {
            client: self.guard(s)?,
            limit: s.seconds(&["timeout", "timeout_s"], 20)?,
        };
        self.page(s, reader, false)
    }

    fn duckduckgo(&self, s: Settings<'_>) -> Result<DuckDuckGo, BadTool> {
        let remote = self
            .remote(s, "DuckDuckGo", duckduckgo::BASE, 20)?
            .with_header(USER_AGENT, HeaderValue::from_static(AGENT));
        Ok(DuckDuckGo {
            remote,
            most: results(s, duckduckgo::MOST)?,
            region: region(s),
            safe: safe(s)?,
        })
    }

    fn duckduckgo_images(&self, s: Settings<'_>) -> Made {
        let remote = self
            .remote(s, "DuckDuckGo", duckduckgo_images::BASE, 20)?
            .with_header(USER_AGENT, HeaderValue::from_static(AGENT));
        let finder = DuckDuckGoImages {
            remote,
            most: results(s, duckduckgo_images::MOST)?,
            region: region(s),
            safe: safe(s)?,
        };
        Ok(erase(ImageSearch::<FilteredImageArgs>::new(
            Arc::new(finder),
            Form::Object,
        )))
    }

    fn exa(&self, s: Settings<'_>) -> Result<Exa, BadTool> {
        let key = s.required_key("EXA_API_KEY")?;
        let remote = keyed(
            s,
            self.remote(s, "Exa", exa::BASE, 30)?,
            HeaderName::from_static("x-api-key"),
            "",
            Some(key),
        )?;
        let kind = s.text("search_type").unwrap_or("auto").to_owned();
        let most_chars = s
            .count("contents_max_characters", 1..=100_000)?
            .unwrap_or(1_000);
        Ok(Exa {
            remote,
            most: results(s, 100)?,
            kind,
            most_chars,
        })
    }

    fn fastcrw(&self, s: Settings<'_>) -> Result<Firecrawl, BadTool> {
        let (base, _) = s.base_url(Some("CRW_API_URL"), firecrawl::FASTCRW_BASE);
        let key = s.key(&["api_key"], "CRW_API_KEY");
        let remote = self.remote_by(self.client.clone(), s, "fastCRW", base, 60)?;
        let remote = keyed(s, remote, AUTHORIZATION, "Bearer ", key)?;
        Ok(Firecrawl {
            remote,
            most: results(s, 100)?,
            version: "v1",
        })
    }

    fn firecrawl(&self, s: Settings<'_>) -> Result<Firecrawl, BadTool> {
        let key = s.key(&["api_key"], "FIRECRAWL_API_KEY");
        // A server of one's own may want none.
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
            most: results(s, 100)?,
            version: "v2",
        })
    }

    fn groundroute(&self, s: Settings<'_>) -> Result<GroundRoute, BadTool> {
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
            most: results(s, groundroute::MOST)?,
        })
    }

    fn infoquest(&self, s: Settings<'_>, role: Role) -> Result<InfoQuest, BadTool> {
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
            // Below zero means: as the server likes it.
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
            self.patience,
        );
        let remote = keyed(
            s,
            remote.map_err(|why| s.bad(why))?,
            AUTHORIZATION,
            "Bearer ",
            Some(key),
        )?;
        Ok(InfoQuest {
            remote,
            most: results(s, 50)?,
            options,
        })
    }

    fn jina(&self, s: Settings<'_>) -> Made {
        let limit = s.seconds(&["timeout"], 10)?;
        let proxy = s.text("proxy").map(reqwest::Proxy::all).transpose();
        let proxy = proxy.map_err(|_| s.bad("`proxy` must be the address of a proxy"))?;
        let trusts = s.switch("trust_env", true)?;
        let client = match (proxy, trusts) {
            (None, true) => Ok(self.client.clone()),
            (Some(proxy), _) => provider_client(|client| client.proxy(proxy)),
            (None, false) => provider_client(ClientBuilder::no_proxy),
        };
        let client = client.map_err(|error| s.bad(error.to_string()))?;
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

    fn searxng(&self, s: Settings<'_>) -> Result<SearXng, BadTool> {
        let language = s.text("language").unwrap_or("auto").to_owned();
        Ok(SearXng {
            remote: self.remote(s, "SearXNG", searxng::BASE, 30)?,
            most: results(s, 100)?,
            language,
        })
    }

    fn serper(&self, s: Settings<'_>) -> Result<Serper, BadTool> {
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
            most: results(s, serper::MOST)?,
        })
    }

    fn tavily(&self, s: Settings<'_>) -> Result<Tavily, BadTool> {
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
            most: results(s, 20)?,
        })
    }
}

/// A client for providers: whom an entry names may be anywhere, and a key follows no redirect.
fn provider_client(adjust: impl FnOnce(ClientBuilder) -> ClientBuilder) -> reqwest::Result<Client> {
    let client = Client::builder()
        .connect_timeout(CONNECT_LIMIT)
        .redirect(reqwest::redirect::Policy::none());
    adjust(client.user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))).build()
}

fn keyed(
    s: Settings<'_>,
    remote: Remote,
    header: HeaderName,
    scheme: &str,
    key: Option<SecretString>,
) -> Result<Remote, BadTool> {
    remote
        .with_key(header, scheme, key)
        .map_err(|why| s.bad(why))
}

/// How many results an entry wants, no more than the provider gives.
fn results(s: Settings<'_>, most: usize) -> Result<usize, BadTool> {
    Ok(s.count("max_results", 1..=1_000)?
        .unwrap_or(USUAL_RESULTS)
        .min(most))
}

fn most_chars(s: Settings<'_>) -> Result<usize, BadTool> {
    Ok(s.count("max_chars", 100..=1_000_000)?
        .unwrap_or(USUAL_CHARS))
}

fn region(s: Settings<'_>) -> String {
    s.text("region").unwrap_or("wt-wt").to_owned()
}

fn safe(s: Settings<'_>) -> Result<Safe, BadTool> {
    match s.text("safesearch") {
        Some(text) => {
            Safe::parse(text).ok_or_else(|| s.bad("`safesearch` must be on, moderate or off"))
        }
        // YAML may read a bare `on` or `off` as a truth value.
        None if !s.has("safesearch") => Ok(Safe::Moderate),
        None => Ok(if s.switch("safesearch", true)? {
            Safe::On
        } else {
            Safe::Off
        }),
    }
}

fn listed(finder: impl PageFinder) -> Arc<dyn DynTool> {
    erase(WebSearch::<SearchArgs>::new(Arc::new(finder), Form::List))
}

fn counted(finder: impl PageFinder) -> Arc<dyn DynTool> {
    erase(WebSearch::<CountedSearchArgs>::new(
        Arc::new(finder),
        Form::Object,
    ))
}

fn pictures(finder: impl PictureFinder, form: Form) -> Arc<dyn DynTool> {
    erase(ImageSearch::<ImageArgs>::new(Arc::new(finder), form))
}
