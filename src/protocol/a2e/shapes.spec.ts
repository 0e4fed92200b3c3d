import { contentShape, promptShape, resourceShape, toolOutcome, toolShape } from './shapes.js';

describe('what agents see of MCP servers', () => {
  it('AE-25 a resource always has the same members, even when its server omits some', () => {
    expect(resourceShape('s', { uri: 'a://x' })).toEqual({
      uri: 'a://x',
      name: 'a://x',
      description: null,
      mime_type: null,
      server_id: 's',
      annotations: {},
    });
    const full = {
      uri: 'a://x',
      name: 'n',
      description: 'd',
      mimeType: 'text/plain',
      annotations: { priority: 1 },
      size: 3,
    };
    expect(resourceShape('s', full)).toEqual({
      uri: 'a://x',
      name: 'n',
      description: 'd',
      mime_type: 'text/plain',
      server_id: 's',
      annotations: { priority: 1 },
    });
  });

  it('a tool and a prompt always have theirs', () => {
    expect(toolShape('s__t', { name: 't', inputSchema: { type: 'object' } })).toEqual({
      name: 't',
      tool_name: 's__t',
      description: null,
      input_schema: { type: 'object' },
      annotations: {},
    });
    expect(promptShape('s', 's__p', { name: 'p', arguments: 'none' })).toMatchObject({ server_id: 's', arguments: [] });
    expect(contentShape({ uri: 'u', text: 't', mimeType: 'm' })).toEqual({ uri: 'u', text: 't', mime_type: 'm' });
    expect(contentShape('odd')).toBe('odd');
  });

  it.each([
    [
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      { success: true, text: 'a\nb', images: [] },
    ],
    [
      { content: [{ type: 'image', data: 'AA', mimeType: 'image/png' }, 7, { type: 'audio', data: 'x' }] },
      { success: true, text: '', images: [{ data: 'AA', mime_type: 'image/png' }] },
    ],
    [
      { content: [{ type: 'text', text: 'no' }], isError: true },
      { success: false, text: 'no', images: [] },
    ],
  ])('AE-68 the result %j has a summary and stays complete', (result, short) => {
    expect(toolOutcome(result as never)).toEqual({ ...short, result });
  });
});
