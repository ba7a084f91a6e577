"""Requests of every day, to be searched over a catalogue of some 8,000 tools.

For each a pattern of the names, server and all in lower case, of the tools that do it.
"""

CATALOGUE = "arcade"

REQUESTS = {
    "send an email": r"(gmail|resend)_+send|outlookmail_+\w*send",
    "reply to an email": r"(gmail|outlookmail)_+reply",
    "search my inbox": r"(gmail|outlookmail)_+.*(list|search)",
    "create a calendar event": r"calendar_+create",
    "find a free time slot for a meeting": r"(calendar|meetings).*(free|slot|availab|meetingtime)",
    "post a message to a slack channel": r"slack\w*_+(send|post|chatpost)\w*",
    "list slack channels": r"slack\w*_+list.*(channel|conversation)",
    "open a pull request": r"github\w*_+create\w*pullrequest",
    "create a github issue": r"github\w*_+create\w*issue",
    "star a repository": r"github\w*_+\w*star",
    "create a jira ticket": r"jira_+createissue",
    "assign a linear issue to someone": r"linear_+(update|assign|create)issue",
    "download a file from dropbox": r"dropbox_+download",
    "find a file in google drive": r"googledrive_+(search|get|list)",
    "add a row to a spreadsheet": r"(sheets|excel)_+\w*(add|append|update|write|create)",
    "create a new google doc": r"googledocs_+create",
    "search the web": r"(googlesearch|exaapi|firecrawl|brightdata|glean)_+\w*search",
    "scrape a web page": r"(firecrawl|brightdata)_+\w*scrape",
    "find flights": r"googleflights_+search",
    "find a hotel": r"googlehotels_+search",
    "get directions": r"googlemaps_+getdirections",
    "stock price": r"googlefinance_+getstock",
    "play a song": r"spotify_+(play|search|start|resume)",
    "refund a customer": r"(stripe|square)\w*_+\w*refund",
    "who is on call": r"pagerduty\w*_+\w*oncall",
}
