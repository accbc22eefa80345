//! Methods of the Bot API by name.

use serde_json::{Value, json};

use super::failure::ApiFailure;
use super::params::Params;
use super::shared::Shared;
use super::{polling, sending, signs, uploads};

/// Parameters that all methods which send a message have.
const SENDING: &[&str] = &[
    "chat_id",
    "message_thread_id",
    "parse_mode",
    "disable_notification",
    "protect_content",
    "allow_paid_broadcast",
    "message_effect_id",
    "reply_parameters",
    "reply_markup",
];

/// Returns the parameters of a method, or `None` if the fake does not have it.
fn known_parameters(method: &str) -> Option<Vec<&'static str>> {
    let sending = |more: &[&'static str]| [SENDING, more].concat();
    Some(match method {
        "getme" | "getwebhookinfo" | "logout" | "close" => vec![],
        "getupdates" => vec!["offset", "limit", "timeout", "allowed_updates"],
        "deletewebhook" => vec!["drop_pending_updates"],
        "setwebhook" => vec![
            "url",
            "certificate",
            "ip_address",
            "max_connections",
            "allowed_updates",
            "drop_pending_updates",
            "secret_token",
        ],
        "sendmessage" => sending(&["text", "entities", "link_preview_options"]),
        "sendrichmessage" => sending(&["rich_message"]),
        "sendphoto" => sending(&[
            "photo",
            "caption",
            "caption_entities",
            "show_caption_above_media",
            "has_spoiler",
        ]),
        "senddocument" => sending(&[
            "document",
            "thumbnail",
            "caption",
            "caption_entities",
            "disable_content_type_detection",
        ]),
        "editmessagetext" => vec![
            "chat_id",
            "message_id",
            "inline_message_id",
            "text",
            "parse_mode",
            "entities",
            "link_preview_options",
            "reply_markup",
            "rich_message",
        ],
        "deletemessage" => vec!["chat_id", "message_id"],
        "sendmessagedraft" => vec![
            "chat_id",
            "message_thread_id",
            "draft_id",
            "text",
            "parse_mode",
            "entities",
            "can_stop",
            "keep_on_stop",
        ],
        "sendchataction" => vec!["chat_id", "message_thread_id", "action"],
        "setmessagereaction" => vec!["chat_id", "message_id", "reaction", "is_big"],
        "answercallbackquery" => vec![
            "callback_query_id",
            "text",
            "show_alert",
            "url",
            "cache_time",
        ],
        "getfile" => vec!["file_id"],
        "setmycommands" => vec!["commands", "scope", "language_code"],
        "getmycommands" | "deletemycommands" => vec!["scope", "language_code"],
        _ => return None,
    })
}

/// Performs a call; names of methods are not case-sensitive.
pub(super) async fn perform(
    shared: &Shared,
    method: &str,
    params: &Params,
) -> Result<Value, ApiFailure> {
    let method = method.to_lowercase();
    let is_off = (method == "sendmessagedraft" && !shared.options.drafts)
        || (method == "sendrichmessage" && !shared.options.rich_messages);
    let known = known_parameters(&method)
        .filter(|_| !is_off)
        .ok_or_else(|| ApiFailure::new(404, "Not Found: method not found"))?;
    if shared.options.strict_parameters {
        params.only(&known)?;
    }
    match method.as_str() {
        "getupdates" => polling::get_updates(shared, params).await,
        "getme" => Ok(me(shared)),
        "deletewebhook" => polling::delete_webhook(shared, params),
        "setwebhook" => polling::set_webhook(shared, params),
        "getwebhookinfo" => Ok(json!({
            "url": shared.world().queue.webhook.clone().unwrap_or_default(),
            "has_custom_certificate": false,
            "pending_update_count": shared.world().queue.len(),
        })),
        "sendmessage" | "sendrichmessage" => sending::send_message(shared, params),
        "editmessagetext" => sending::edit_message(shared, params),
        "deletemessage" => sending::delete_message(shared, params),
        "sendmessagedraft" => sending::send_draft(shared, params),
        "sendphoto" => uploads::send_file(shared, params, "photo"),
        "senddocument" => uploads::send_file(shared, params, "document"),
        "getfile" => uploads::get_file(shared, params),
        "sendchataction" => signs::chat_action(shared, params),
        "setmessagereaction" => signs::reaction(shared, params),
        "answercallbackquery" => signs::answer_press(shared, params),
        "setmycommands" => signs::set_commands(shared, params),
        "getmycommands" => Ok(shared.world().commands.clone()),
        "deletemycommands" => {
            shared.change(|world| world.commands = json!([]));
            Ok(json!(true))
        }
        _ => Ok(json!(true)),
    }
}

fn me(shared: &Shared) -> Value {
    let world = shared.world();
    let mut me = world.user(world.bot_id);
    me["can_join_groups"] = json!(true);
    me["can_read_all_group_messages"] = json!(!shared.options.privacy_mode);
    me["supports_inline_queries"] = json!(false);
    me
}
