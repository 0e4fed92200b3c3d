import { randomUUID } from 'node:crypto';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { keepPause } from '../../protocol/a2a/conversation/paused.js';
import { arrayMember, member } from '../../protocol/a2a/members.js';
import type { Part } from '../../protocol/a2a/model.js';
import { partsOf } from '../../protocol/a2a/remote/remote-parts.js';
import { stateOf } from '../../protocol/a2a/states.js';

// The SDK's v0.3 reader for HTTP+JSON and gRPC drops members that the wire has: `append` of an artifact update,
// metadata and file names of parts, extensions of artifacts. For an unknown part, role or state it refuses the whole
// answer. Before it reads, `carry` moves these members into the metadata of their object, which the reader keeps;
// `takeCarried` puts them back afterwards.

/** Differs in each process, so that no remote agent can write this key. */
const key = `rialto-carried-${randomUUID()}`;

interface Carried {
  readonly append?: boolean;
  readonly parts?: Part[];
  readonly extensions?: string[];
}

interface Owner {
  metadata?: JsonObject;
}

/** Prepares an answer or an event of v0.3 HTTP+JSON, in place, so that the SDK's reader loses nothing. */
export function carry(reply: Json): Json {
  if (!isJsonObject(reply)) return reply;
  const [task, status, update] = ['task', 'statusUpdate', 'artifactUpdate'].map((name) => member(reply, name));
  const message = member(reply, 'message') ?? member(reply, 'msg');
  carryTask(isJsonObject(task) ? task : reply);
  if (isJsonObject(message)) carryMessage(message);
  if (isJsonObject(status)) carryStatus(member(status, 'status'));
  if (isJsonObject(update)) {
    put(update, { append: member(update, 'append') === true });
    carryArtifact(member(update, 'artifact'));
  }
  return reply;
}

/** Prepares an answer or an event of v0.3 gRPC as its generated code decodes it; its parts need nothing carried. */
export function carryDecoded(decoded: unknown): void {
  const { payload } = decoded as { payload?: { $case?: string; value?: DecodedObject } };
  const object = payload?.value ?? (decoded as DecodedObject);
  if (payload?.$case === 'artifactUpdate') put(object as JsonObject, { append: object.append === true });
  for (const message of [object, object.status?.update, ...(object.history ?? [])]) {
    if (message?.content) message.role = message.role === 1 ? 1 : agentRole;
    message?.content?.forEach(mendPart);
  }
  for (const artifact of [object.artifact, ...(object.artifacts ?? [])]) artifact?.parts?.forEach(mendPart);
  const { status } = object;
  if (status && !(status.state! in decodedStates)) status.state = 0;
}

const agentRole = 2;
/** The states of the v0.3 proto, by number. */
const decodedStates = Array.from({ length: 9 }, () => true);

interface DecodedPart {
  part?: unknown;
}

/** The members of the generated types that are read here. */
interface DecodedObject {
  append?: boolean;
  role?: number;
  content?: DecodedPart[];
  status?: { state?: number; update?: DecodedObject };
  history?: DecodedObject[];
  artifact?: { parts?: DecodedPart[] };
  artifacts?: { parts?: DecodedPart[] }[];
}

/** Fills a part without content: so the decoder returns a part of a kind from a newer proto. */
function mendPart(part: DecodedPart): void {
  part.part ??= { $case: 'data', value: { data: {} } };
}

/** Removes the carried members from the metadata of an object and returns them. */
export function takeCarried(owner: Owner | undefined): Carried {
  const carried = owner?.metadata?.[key] as Carried | undefined;
  if (carried === undefined) return {};
  const { [key]: _taken, ...rest } = owner!.metadata!;
  if (Object.keys(rest).length > 0) owner!.metadata = rest;
  else delete owner!.metadata;
  return carried;
}

function carryTask(task: JsonObject): void {
  carryStatus(member(task, 'status'));
  arrayMember(task, 'artifacts').forEach(carryArtifact);
  for (const message of arrayMember(task, 'history')) if (isJsonObject(message)) carryMessage(message);
}

function carryStatus(status: Json | undefined): void {
  if (!isJsonObject(status)) return;
  keepPause(status, '0.3');
  const state = member(status, 'state');
  // A number is a state of the proto; the SDK's reader knows those of v0.3.
  if (typeof state === 'string') status.state = stateOf(state).replace('_CANCELED', '_CANCELLED');
  const message = member(status, 'message') ?? member(status, 'update');
  if (isJsonObject(message)) carryMessage(message);
}

function carryArtifact(artifact: Json | undefined): void {
  if (isJsonObject(artifact)) putParts(artifact, 'parts');
}

function carryMessage(message: JsonObject): void {
  const role = member(message, 'role');
  const isUser = role === 1 || (typeof role === 'string' && /user/i.test(role));
  message.role = isUser ? 'ROLE_USER' : 'ROLE_AGENT';
  putParts(message, Array.isArray(message.content) ? 'content' : 'parts');
  message.content ??= [];
}

function putParts(owner: JsonObject, name: 'parts' | 'content'): void {
  const parts = partsOf(arrayMember(owner, name).filter(isJsonObject), 'content');
  const extensions = arrayMember(owner, 'extensions').filter((each) => typeof each === 'string');
  owner[name] = [];
  put(owner, { parts, ...(extensions.length > 0 && { extensions }) });
}

function put(owner: JsonObject, carried: Carried): void {
  const metadata = isJsonObject(owner.metadata) ? owner.metadata : {};
  owner.metadata = { ...metadata, [key]: carried as unknown as Json };
}
