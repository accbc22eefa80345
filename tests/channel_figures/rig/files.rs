//! Files that the bot sent.

use deerflow_chat_platforms::discord::BOT;
use deerflow_chat_platforms::wecom::ShownKind;
use serde_json::Value;

use super::platforms::{PlatformName, Platforms};

impl Platforms {
    /// Returns the contents of the files of the bot in a direct chat, in order.
    pub(crate) async fn files(
        &self,
        name: PlatformName,
        conversation: usize,
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        let chat = name.chat(conversation);
        Ok(match name {
            PlatformName::Telegram => {
                let messages = self.telegram.answers(chat.parse()?).into_iter();
                let files = messages.filter_map(|message| message.file);
                files.map(|file| file.bytes.to_vec()).collect()
            }
            PlatformName::Slack => {
                let messages = self.slack.answers(&chat).into_iter();
                let ids = messages.flat_map(|message| message.files);
                let files = ids.filter_map(|file| self.slack.file(file["id"].as_str()?));
                files
                    .filter_map(|file| Some(file.bytes?.to_vec()))
                    .collect()
            }
            PlatformName::Discord => self.discord_files(&chat).await?,
            PlatformName::Feishu => {
                let messages = self.feishu.sent().into_iter();
                let files = messages
                    .filter(|message| message.chat_id == chat)
                    .filter_map(|message| {
                        let content: Value = serde_json::from_str(&message.content).ok()?;
                        self.feishu.file(content["file_key"].as_str()?)
                    });
                files.map(|file| file.bytes.to_vec()).collect()
            }
            PlatformName::DingTalk => {
                let sent = self.dingtalk.controls().sent().into_iter();
                let sent = sent.filter(|(to, key, _)| *to == chat && key == "sampleFile");
                let files = sent.filter_map(|(_, _, parameters)| {
                    self.dingtalk
                        .controls()
                        .file(parameters["mediaId"].as_str()?)
                });
                files.collect()
            }
            PlatformName::WeCom => {
                let shown = self.wecom.shown().into_iter();
                let shown =
                    shown.filter(|shown| shown.chat == chat && shown.kind == ShownKind::File);
                let files = shown.filter_map(|shown| self.wecom.uploaded(&shown.content));
                files.map(|(_, bytes)| bytes).collect()
            }
        })
    }

    async fn discord_files(&self, chat: &str) -> anyhow::Result<Vec<Vec<u8>>> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let bot = BOT.to_string();
        let messages = self.discord.controls().messages();
        let of_bot = messages
            .iter()
            .filter(|message| message["channel_id"] == chat && message["author"]["id"] == bot);
        let attachments = of_bot.filter_map(|message| message["attachments"].as_array());
        let mut files = Vec::new();
        for url in attachments
            .flatten()
            .filter_map(|file| file["url"].as_str())
        {
            files.push(client.get(url).send().await?.bytes().await?.to_vec());
        }
        Ok(files)
    }
}
