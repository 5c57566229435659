// A plotly figure in the theme of the page; it is turned when the page is.
const themed = ({ data, layout }) => {
  const theme = document.body.classList.contains("body--dark") ? "dark" : "light";
  return { data, layout: { ...layout, template: window.pitchpipe.templates[theme] } };
};

export default {
  template: "<div></div>",
  props: { options: Object },
  async mounted() {
    this.plotly = (await import("nicegui-plotly")).Plotly;
    if (!this.$el.isConnected) return;
    await this.update();
    this.resizing = new ResizeObserver(() => this.plotly.Plots.resize(this.$el));
    this.resizing.observe(this.$el);
    this.turning = new MutationObserver(() => this.turn());
    this.turning.observe(document.body, { attributeFilter: ["class"] });
  },
  unmounted() {
    this.resizing?.disconnect();
    this.turning?.disconnect();
  },
  methods: {
    async update() {
      if (!this.plotly) return; // it is drawn once plotly is there
      const isFirst = !this.$el.data;
      await this.plotly.react(this.$el, { ...themed(this.options), config: this.options.config });
      if (isFirst) for (const name of ["plotly_click", "plotly_restyle"]) this.$el.on(name, (event) => this.$emit(name, event));
    },
    turn() {
      const { template } = themed(this.options).layout;
      if (this.$el.layout?.template !== template) this.plotly.relayout(this.$el, { template });
    },
  },
};
