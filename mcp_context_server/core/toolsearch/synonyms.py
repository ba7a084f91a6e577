"""A small thesaurus of what tools are about, for queries that use another word.

Each line is a group; a word may stand in several. Plain words of the trade,
chosen by hand; what they are worth in a score is in the policy.
"""

from collections.abc import Mapping
from functools import cache

from mcp_context_server.core.toolsearch.stemmer import stem

GROUPS = """
create add new make insert generate build
delete remove erase destroy drop trash discard clear
update edit modify change alter set adjust patch
get fetch retrieve read obtain show view
list enumerate browse
search find query lookup discover locate
send post publish submit deliver notify dispatch
message chat dm text sms
email mail inbox gmail outlook
schedule plan book arrange
event meeting calendar appointment invite
issue ticket bug incident
task todo reminder assignment
file document doc
folder directory
repository repo
pr pull merge
image picture photo img
video movie film clip
music song track audio
speech voice speak tts
subtitle caption transcript
account user profile member person people
contact lead customer client
company organization organisation org business
employee staff worker personnel
team group crew
product item goods merchandise
order purchase buy checkout
cart basket
price cost rate quote fee
stock share equity ticker
crypto cryptocurrency bitcoin coin
currency money exchange forex
weather forecast temperature climate
rain precipitation
location place address geocode coordinate position
route direction navigate path
flight airline plane airfare
hotel accommodation lodging stay
car vehicle automobile
restaurant food dining eat meal
recipe cook dish ingredient
news headline article story
summary summarize summarise abstract digest
translate translation language
convert conversion transform
calculate compute evaluate math
chart plot graph diagram visualize visualise visualization
table sheet spreadsheet excel worksheet
slide presentation powerpoint ppt deck
column field attribute
row record entry
database db sql
run execute invoke launch start
stop halt terminate kill cancel end
pause suspend
upload attach
download save export
duplicate copy clone
move transfer relocate
share permission access grant
comment reply note annotation
label tag category
log logs
error exception failure
deploy deployment release
server host machine instance
container docker
cluster kubernetes k8s
website site webpage page url link web
scrape crawl extract
browser chrome
click press tap
type input fill
screenshot capture snapshot
code script program source
test check verify validate
function method procedure
paper publication study research literature
disease illness condition diagnosis
drug medicine medication
job career vacancy position hiring
sport game match
book ebook novel
password credential secret
encrypt encode cipher
pay payment invoice bill charge
refund reimburse
subscribe subscription
favorite favourite star like bookmark
follow follower
history past previous
time date clock
fitness exercise workout
size length dimension
shrink compress resize
remember memory memorize
open create
internet web online
twitter tweet x
close resolve complete finish done
approve accept confirm
""".strip().splitlines()


@cache
def synonyms() -> Mapping[str, tuple[str, ...]]:
    """Stems by stem: the others of its groups."""
    found: dict[str, dict[str, None]] = {}
    for group in GROUPS:
        stems = dict.fromkeys(map(stem, group.split()))
        for word in stems:
            found.setdefault(word, {}).update(dict.fromkeys(stems.keys() - {word}))
    return {word: tuple(sorted(others)) for word, others in found.items()}
