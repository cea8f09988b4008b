package words

import "strings"

// Aliases are groups of names for one thing that people who make software use for one
// another. A name may have several words. The same name may be in several groups.
func Aliases() [][]string {
	lines := strings.Split(strings.TrimSpace(aliases), "\n")
	groups := make([][]string, 0, len(lines))
	for _, line := range lines {
		groups = append(groups, strings.Split(line, " = "))
	}
	return groups
}

// aliases has a group a line. What has a second, common meaning in everyday talk is
// left out: a memory also holds conversations.
const aliases = `
k8s = kubernetes = kube
i18n = internationalization = internationalisation
l10n = localization = localisation
a11y = accessibility
o11y = observability
g11n = globalization = globalisation
p13n = personalization
i14y = interoperability
m17n = multilingualization
c14n = canonicalization
n11n = normalization
d11n = documentation
v12n = virtualization
s11n = serialization = serialisation
e2e = end to end
a12n = authentication
pg = postgres = postgresql = psql
mongo = mongodb
es = elasticsearch
mssql = sql server
dotnet = .net
sqlite = sqlite3
memcache = memcached
rabbit = rabbitmq
nats = jetstream
db = database
dbs = databases
rdbms = relational database
orm = object relational mapper
ddl = data definition language
dml = data manipulation language
pk = primary key
fk = foreign key
tx = txn = transaction
wal = write ahead log = journal
mvcc = multiversion concurrency control
cdc = change data capture
etl = extract transform load
olap = analytical processing
oltp = transaction processing
dwh = data warehouse
auth = authentication = authorization = authn = authz
authn = authentication
authz = authorization
oauth = oauth2
oidc = openid connect
sso = single sign on
mfa = 2fa = two factor = multi factor
otp = one time password
totp = authenticator
jwt = json web token
pat = personal access token
rbac = role based access control
abac = attribute based access control
acl = access control list
iam = identity and access management
pwd = passwd = password
creds = credentials
cert = certificate
certs = certificates
ca = certificate authority
mtls = mutual tls
tls = ssl
pki = public key infrastructure
kms = key management
hsm = hardware security module
cve = vulnerability
vuln = vulnerability
xss = cross site scripting
csrf = xsrf = cross site request forgery
sqli = sql injection
ssrf = server side request forgery
dos = denial of service
ddos = distributed denial of service
pentest = penetration test
waf = web application firewall
sast = static analysis
dast = dynamic analysis
sbom = bill of materials
cfg = conf = config = configuration
configs = configurations
env = environment
envs = environments
envvar = environment variable
param = parameter
params = parameters
arg = argument
args = arguments
opt = option
opts = options
prefs = preferences
attr = attribute
attrs = attributes
prop = property
props = properties
var = variable
vars = variables
const = constant
func = fn = function
funcs = functions
proc = procedure
ctor = constructor
dtor = destructor
impl = implementation
iface = interface
init = initialization = initialisation = initialize
deinit = deinitialization
ctx = context
req = request
resp = res = response
err = error
errs = errors
msg = message
msgs = messages
evt = event
cb = callback
ptr = pointer
ref = reference
refs = references
idx = index
iter = iterator
elem = element
obj = object
str = string
int = integer
bool = boolean
num = number
char = character
enum = enumeration
struct = structure
dict = dictionary
arr = array
vec = vector
buf = buffer
mem = memory
alloc = allocation = allocator
gc = garbage collection = garbage collector
oom = out of memory
npe = null pointer
segfault = segmentation fault = sigsegv
regex = regexp = regular expression
ast = syntax tree
repl = interactive shell
jit = just in time
aot = ahead of time
wasm = webassembly
ffi = foreign function interface
abi = binary interface
asm = assembly
simd = vector instructions
cpu = processor
gpu = graphics card
ssd = solid state
nic = network card
os = operating system
vm = virtual machine
vms = virtual machines
vpc = virtual private cloud
vpn = virtual private network
lan = local network
nat = address translation
dns = domain name system = name resolution
dhcp = address assignment
fqdn = domain name
url = uri = link
http = https
ws = websocket
sse = server sent events
rpc = remote procedure call
protobuf = protocol buffers
api = application programming interface
sdk = software development kit
cli = command line
gui = graphical interface
tui = terminal interface
ui = user interface
ux = user experience
dx = developer experience
spa = single page application
ssr = server side rendering
csr = client side rendering
pwa = progressive web app
css = stylesheet
js = javascript = ecmascript
ts = typescript
py = python
rb = ruby
rs = rust
go = golang
cpp = c++ = cplusplus
csharp = c#
fsharp = f#
objc = objective c
node = nodejs = node.js
nextjs = next.js
vuejs = vue.js
reactjs = react.js
tf = terraform
iac = infrastructure as code
cfn = cloudformation
gha = github actions
gh = github
gl = gitlab
bb = bitbucket
pr = pull request = mr = merge request
prs = pull requests = merge requests
repo = repository
repos = repositories
vcs = version control
ci = continuous integration
cd = continuous delivery = continuous deployment
cicd = ci/cd
dep = dependency
deps = dependencies
pkg = package
pkgs = packages
lib = library
libs = libraries
mod = module
vendoring = vendored dependencies
dist = distribution
src = source
dir = directory = folder
dirs = directories
tmp = temp = temporary
bin = binary
exe = executable
spec = specification
specs = specifications
rfc = request for comments
adr = architecture decision = decision record
doc = documentation
docs = documentation
readme = read me
changelog = release notes
wip = work in progress
poc = proof of concept
mvp = minimum viable product
lgtm = looks good
nit = nitpick
tdd = test driven development
bdd = behaviour driven development
ddd = domain driven design
qa = quality assurance
uat = acceptance test
perf = performance
bench = benchmark
benches = benchmarks
prof = profiler
repro = reproduction = reproducer
prod = production
dev = development
stg = staging
preprod = pre production
sla = service level agreement
slo = service level objective
sli = service level indicator
sre = site reliability = reliability engineer
rca = root cause
mttr = time to recovery
rto = recovery time
rpo = recovery point
dr = disaster recovery
ha = high availability
lb = load balancer
hpa = horizontal pod autoscaler
crd = custom resource definition
ns = namespace
svc = service
svcs = services
deploy = deployment = rollout
cm = configmap
sts = statefulset
ds = daemonset
pvc = persistent volume claim
pv = persistent volume
cr = custom resource
ecr = container registry
ec2 = elastic compute
s3 = object storage
aws = amazon web services
gcp = google cloud
gke = google kubernetes
eks = amazon kubernetes
aks = azure kubernetes
rds = relational database service
cdn = content delivery network
ttl = time to live = expiry
lru = least recently used
lfu = least frequently used
fifo = queue
lifo = stack
qps = rps = queries per second = requests per second
p99 = 99th percentile
p95 = 95th percentile
p50 = median
rtt = round trip
tps = transactions per second
utc = gmt
ts = timestamp
tz = timezone = time zone
dst = daylight saving
uuid = guid
ulid = sortable id
hex = hexadecimal
b64 = base64
crc = checksum
hmac = keyed hash
sig = signature
enc = encryption
crypto = cryptography
prng = random number generator
rng = random number generator
ml = machine learning
ai = artificial intelligence
dl = deep learning
nn = neural network
llm = large language model = language model
llms = language models
nlp = natural language processing
ocr = text recognition
rag = retrieval augmented generation
ann = nearest neighbour = nearest neighbor
knn = k nearest neighbours
hnsw = proximity graph
bm25 = okapi
tfidf = tf-idf
ir = information retrieval
mcp = model context protocol
sft = fine tuning = finetuning
rlhf = human feedback
cot = chain of thought
json = jsonl = ndjson
yaml = yml
md = markdown
csv = comma separated
xlsx = excel = spreadsheet
img = image
imgs = images
vid = video
fs = filesystem = file system
nfs = network file system
io = input output
stdin = standard input
stdout = standard output
stderr = standard error
fd = file descriptor
pid = process id
ipc = interprocess communication
mutex = lock
sem = semaphore
async = asynchronous
sync = synchronous
concurrency = parallelism
cron = scheduled job = cronjob
daemon = background process
admin = administrator
ops = operations
devops = platform engineering
infra = infrastructure
org = organization = organisation
mgmt = management
mgr = manager
eng = engineering
arch = architecture
app = application
apps = applications
addr = address
alt = alternative
approx = approximately
calc = calculation
cmd = command
cmds = commands
cmp = comparison
coord = coordinator
cur = current
def = definition
del = delete
desc = description
dest = destination
diff = difference
eval = evaluation
exec = execution
exp = experiment
ext = extension
fmt = format
gen = generator
hw = hardware
sw = software
fw = firewall = firmware
kv = key value
len = length
loc = lines of code
max = maximum
min = minimum
misc = miscellaneous
nav = navigation
orig = original
pos = position
prev = previous
qty = quantity
rand = random
recv = receive
reg = register
rel = release
sched = scheduler
sep = separator
seq = sequence
stat = statistic
stats = statistics
sub = subscription
sys = system
tbl = table
util = utility
utils = utilities
val = value
vals = values
ver = version
vol = volume
eta = estimated time
eod = end of day
ooo = out of office
asap = as soon as possible
fyi = for your information
tbd = to be decided
`
