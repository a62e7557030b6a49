/** What the service refuses is thrown as an Error: `name` is the service's own, `message` is "code: description". */
export interface EmulatedAi {
  readonly lastRequestId: string | null;
  readonly aiGatewayLogId: string | null;
  readonly lastRequestHttpStatusCode: number | null;
  readonly lastRequestInternalStatusCode: number | null;
  run(
    model: string,
    inputs: Record<string, unknown>,
    options: RunOptions & { returnRawResponse: true },
  ): Promise<Response>;
  run(
    model: string,
    inputs: Record<string, unknown> & { stream: true },
    options?: RunOptions,
  ): Promise<ReadableStream<Uint8Array>>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  run(model: string, inputs: Record<string, unknown>, options?: RunOptions): Promise<any>;
  models(params?: ModelsParams): Promise<Model[]>;
  toMarkdown(): MarkdownService;
  toMarkdown(files: MarkdownDocument[], options?: object): Promise<ConversionResponse[]>;
  toMarkdown(file: MarkdownDocument, options?: object): Promise<ConversionResponse>;
  gateway(id: string): {
    getLog(id: string): Promise<Record<string, unknown> & { created_at: Date }>;
    patchLog(id: string, data: object): Promise<void>;
  };
}

export interface RunOptions {
  queueRequest?: boolean;
  returnRawResponse?: boolean;
  gateway?: { id: string; [option: string]: unknown };
  prefix?: string;
  extraHeaders?: Record<string, string>;
  signal?: AbortSignal;
  [option: string]: unknown;
}

export interface ModelsParams {
  author?: string;
  hide_experimental?: boolean;
  page?: number;
  per_page?: number;
  search?: string;
  source?: number;
  task?: string;
}

export interface Model {
  id: string;
  source: number;
  name: string;
  description: string;
  task: { id: string; name: string; description: string };
  tags: string[];
  properties: { property_id: string; value: unknown }[];
}

export interface MarkdownDocument {
  name: string;
  blob: Blob;
}

export interface ConversionResponse {
  id: string;
  name: string;
  mimeType: string;
  format: string;
  tokens?: number;
  data?: string;
  error?: string;
}

export interface MarkdownService {
  supported(): Promise<{ extension: string; mimeType: string }[]>;
  transform(files: MarkdownDocument[], options?: object): Promise<ConversionResponse[]>;
  transform(file: MarkdownDocument, options?: object): Promise<ConversionResponse>;
}

/**
 * An env.AI that asks the emulator at `url`, for code that runs without a binding.
 *
 * `account` is the account that is meant (32 hex digits), `fetch` another way to it than the global one.
 */
export function createAi(url: string | URL, options?: { account?: string; fetch?: typeof fetch }): EmulatedAi;
