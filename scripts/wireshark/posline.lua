-- Shows the frames of `posline tap --write` in Wireshark: what each is, its checksum's verdict, request and reply linked.
--
-- Copy it into the folder of personal Lua plugins (Help > About > Folders; ~/.local/lib/wireshark/plugins), or name it:
--   wireshark -X lua_script:posline.lua till.pcapng
-- For Lua 5.2 (Wireshark up to 4.2) and 5.4 (from 4.4 on), so it has neither bit32 nor bit operators.

local posline = Proto("posline", "posline frame")

local roles = {
  [0] = "request", [1] = "reply", [2] = "probe", [3] = "probe answer", [4] = "late", [5] = "discard", [6] = "ended",
}
local verdicts = { [0] = "none", [1] = "good", [2] = "wrong" }
local framings = { [0] = "none", [1] = "length", [2] = "stx" }
local outcomes = { [0] = "none", [1] = "answered", [2] = "not-sent", [3] = "unknown" }

local field = {
  version = ProtoField.uint8("posline.version", "Header version"),
  out = ProtoField.bool("posline.out", "To the terminal", 8, nil, 0x01),
  masked = ProtoField.bool("posline.masked", "Masked", 8, nil, 0x02),
  role = ProtoField.uint8("posline.role", "Role", base.DEC, roles),
  checksum = ProtoField.uint8("posline.checksum", "Checksum", base.DEC, verdicts),
  framing = ProtoField.uint8("posline.framing", "Framing", base.DEC, framings),
  outcome = ProtoField.uint8("posline.outcome", "Outcome", base.DEC, outcomes),
  wire_bytes = ProtoField.uint32("posline.wire_bytes", "Bytes on the wire"),
  service = ProtoField.string("posline.service", "Service"),
  route = ProtoField.string("posline.route", "Route"),
  request_id = ProtoField.string("posline.request_id", "Request id"),
  reason = ProtoField.string("posline.reason", "Reason"),
  sums = ProtoField.string("posline.sums", "Checksums"),
  payload = ProtoField.string("posline.payload", "Payload"),
  bytes = ProtoField.bytes("posline.bytes", "First bytes"),
  request_in = ProtoField.framenum("posline.request_in", "Request in", base.NONE, frametype.REQUEST),
  response_in = ProtoField.framenum("posline.response_in", "Reply in", base.NONE, frametype.RESPONSE),
  time = ProtoField.relative_time("posline.time", "Time since the request"),
}
posline.fields = {
  field.version, field.out, field.masked, field.role, field.checksum, field.framing, field.outcome, field.wire_bytes,
  field.service, field.route, field.request_id, field.reason, field.sums, field.payload, field.bytes, field.request_in,
  field.response_in, field.time,
}

local note = {
  checksum = ProtoExpert.new("posline.expert.checksum", "Wrong checksum", expert.group.CHECKSUM, expert.severity.ERROR),
  late = ProtoExpert.new("posline.expert.late", "Nobody asked for it, or not any more", expert.group.SEQUENCE, expert.severity.WARN),
  discard = ProtoExpert.new("posline.expert.discard", "Bytes that became no frame", expert.group.UNDECODED, expert.severity.WARN),
  unknown = ProtoExpert.new("posline.expert.unknown", "The outcome is unknown", expert.group.RESPONSE_CODE, expert.severity.WARN),
  unmasked = ProtoExpert.new("posline.expert.unmasked", "Not masked: card data and secrets", expert.group.SECURITY, expert.severity.NOTE),
  version = ProtoExpert.new("posline.expert.version", "Another version of the header", expert.group.PROTOCOL, expert.severity.WARN),
}
posline.experts = { note.checksum, note.late, note.discard, note.unknown, note.unmasked, note.version }

local interface_id = Field.new("frame.interface_id")
local json = Dissector.get("json")

-- Requests that have no reply yet, by interface and request id, and by frame what belongs together.
local pending, request_of, reply_of

function posline.init()
  pending, request_of, reply_of = {}, {}, {}
end

local function link(pinfo, tree, role, id)
  local frame = pinfo.number
  if not pinfo.visited then
    local interface = interface_id()
    local key = tostring(interface and interface.value or 0) .. " " .. id
    if role == 0 or role == 2 then
      pending[key] = { frame = frame, at = pinfo.rel_ts }
    elseif pending[key] and (role == 1 or role == 3 or role == 6) then
      request_of[frame] = pending[key]
      reply_of[pending[key].frame] = frame
      pending[key] = nil
    end
  end
  local request = request_of[frame]
  if request then
    local seconds = pinfo.rel_ts - request.at
    local whole = math.floor(seconds)
    tree:add(field.request_in, request.frame):set_generated()
    tree:add(field.time, NSTime.new(whole, math.floor((seconds - whole) * 1e9 + 0.5))):set_generated()
  end
  if reply_of[frame] then tree:add(field.response_in, reply_of[frame]):set_generated() end
end

-- A value's %XX escapes undone, as posline does: `+` stays `+`.
local function unescaped(value)
  return (value:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- A request's JSON stands behind its route, a fiscal one's in Base64; a reply is JSON.
local function show_json(payload, pinfo, tree)
  local text = payload:raw()
  local data = text:match("^command=[^&]*&.-data=([^&]+)") or text:match("^data=([^&]+)")
  if data then
    local bytes = ByteArray.new(unescaped(data), true):base64_decode()
    if bytes:len() > 0 then json:call(bytes:tvb("Decoded data"), pinfo, tree) end
    return
  end
  local start = text:find("{", 1, true)
  local head = start and text:sub(1, start - 1)
  if head and (head:match("^%s*$") or head:match("^:?%d*/[^\n]*\n%s*$")) then
    json:call(payload:range(start - 1):tvb(), pinfo, tree)
  end
end

local function name(value)
  return value ~= "" and value or nil
end

function posline.dissector(buffer, pinfo, tree)
  local length = buffer:len()
  if length < 12 then return 0 end
  local branch = tree:add(posline, buffer())
  branch:add(field.version, buffer(0, 1))
  if buffer(0, 1):uint() ~= 1 then
    branch:add_proto_expert_info(note.version)
    return length
  end
  local header_bytes = buffer(6, 2):uint()
  local role, checksum, outcome = buffer(2, 1):uint(), buffer(3, 1):uint(), buffer(5, 1):uint()
  branch:add(field.out, buffer(1, 1))
  branch:add(field.masked, buffer(1, 1))
  local role_item = branch:add(field.role, buffer(2, 1))
  local checksum_item = branch:add(field.checksum, buffer(3, 1))
  branch:add(field.framing, buffer(4, 1))
  local outcome_item = branch:add(field.outcome, buffer(5, 1))
  branch:add(field.wire_bytes, buffer(8, 4))

  local texts = {}
  local at = 12
  for _, each in ipairs({ "service", "route", "request_id", "reason", "sums" }) do
    local bytes = buffer(at, 1):uint()
    texts[each] = ""
    if bytes > 0 then
      texts[each] = buffer(at + 1, bytes):string(ENC_UTF_8)
      branch:add_packet_field(field[each], buffer(at + 1, bytes), ENC_UTF_8)
    end
    at = at + 1 + bytes
  end

  if checksum == 2 then checksum_item:add_proto_expert_info(note.checksum, "Wrong checksum: " .. texts.sums) end
  if role == 4 then role_item:add_proto_expert_info(note.late) end
  if role == 5 then role_item:add_proto_expert_info(note.discard, "Discarded: " .. texts.reason) end
  if outcome == 3 then outcome_item:add_proto_expert_info(note.unknown, "The outcome is unknown: " .. texts.reason) end
  if buffer(1, 1):uint() % 4 < 2 then branch:add_proto_expert_info(note.unmasked) end

  -- A probe has no id: one is in flight at a time.
  link(pinfo, branch, role, (role == 2 or role == 3) and "probe " .. texts.service or texts.request_id)

  if length > header_bytes then
    local payload = buffer(header_bytes)
    if role == 5 then
      branch:add(field.bytes, payload)
    else
      branch:add_packet_field(field.payload, payload, ENC_UTF_8)
      show_json(payload, pinfo, tree)
    end
  end

  -- Last, since the JSON dissector writes there too.
  pinfo.cols.protocol = "posline"
  local words = { roles[role] or "?" }
  for _, each in ipairs({ "service", "route", "reason" }) do
    if name(texts[each]) then words[#words + 1] = texts[each] end
  end
  if outcome > 0 then words[#words + 1] = outcomes[outcome] end
  if checksum > 0 then words[#words + 1] = "checksum " .. (verdicts[checksum] or "?") end
  pinfo.cols.info = table.concat(words, " ")
  return length
end
